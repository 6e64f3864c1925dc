"""Which files hold a table of all runs: those of the runs, or a copy of many of them in one.

A question to a thousand files spends its time on opening them. So where more than `MANY` runs are
over, their files of a table are copied into one, in ``<runs-dir>/.gathered``, under the names of
their runs' folders. Beside each copy an index says what went into it, with sizes and times; a copy
counts only while all of that is as it was. It is a cache: whoever asks makes it where that is
needed, and it may be removed at any time.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agentrecipes.analysis.copied import FOLDER, Copy, Sizes, read, written
from agentrecipes.tracking import manifest, running

SETTLED_SECONDS = 60.0  # since a folder's last change; one that changes would spoil its copy
MANY = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """What is copied: ``Limits(many=64, copies=8, most_bytes=2**29)``."""

    many: int = MANY  # folders of one table that are worth a copy
    copies: int = 8  # of one table; the next one takes in all of them
    most_bytes: int = 2**29  # of one copy's files: token ids of a large store stay where they are


def current(
    runs_dir: Path,
    table: str,
    *,
    limits: Limits | None = None,
    copying: Callable[[str, int], None] | None = None,
) -> list[Path]:
    """Paths of files that together hold every row of the table once; none that lies elsewhere.

    `copying` is told the table and the number of runs, before their files are copied.
    A file may be gone by the time it is opened, when a compaction ended meanwhile: ask again then.
    """
    root = runs_dir.resolve()
    if not root.is_dir():
        return []
    limits = limits or Limits()
    found = _folders(root, table)
    copies = _copies(root, table, found)
    copied = {folder for copy in copies for folder in copy.folders}
    worth, again = _worth_it(root, found, copies, limits=limits)
    folders = {name: found[name] for name in worth}
    if worth and (copy := _gathered(root, table, folders, limits=limits, copying=copying)):
        copies = [copy] if again else [*copies, copy]
        copied |= copy.folders.keys()
        _tidy(root, table, keep=copies)
    plain = (path for folder in sorted(found.keys() - copied) for path in manifest.current(folder))
    return [Path(copy.path) for copy in copies] + [Path(path) for path in plain]


def _folders(root: Path, table: str) -> dict[str, int]:
    """The table's folder in every run → when it last changed, in nanoseconds."""
    # Plain text paths: with ten thousand runs, pathlib would take longer than the query.
    inside = f"{root}{os.sep}"
    found = {}
    for entry in os.scandir(root):
        if entry.name == FOLDER or not entry.is_dir():
            continue
        folder = f"{entry.path}/tables/{table}"
        with suppress(OSError):
            above, own = os.lstat(f"{entry.path}/tables"), os.lstat(folder)
            links = entry.is_symlink() or stat.S_ISLNK(above.st_mode) or stat.S_ISLNK(own.st_mode)
            if not links or os.path.realpath(folder).startswith(inside):
                found[folder] = own.st_mtime_ns
    return found


def _copies(root: Path, table: str, found: Mapping[str, int]) -> list[Copy]:
    """The table's copies that are as true as what they were made of, no folder in two of them."""
    folder = root / FOLDER
    if folder.is_symlink() or not folder.is_dir():
        return []
    copies: list[Copy] = []
    taken: set[str] = set()
    for path in sorted(folder.glob(f"{table}-*.json")):
        copy = read(path)
        if copy is not None and taken.isdisjoint(copy.folders) and _holds(copy, found):
            copies.append(copy)
            taken |= copy.folders.keys()
    return copies


def _holds(copy: Copy, found: Mapping[str, int]) -> bool:
    """Whether everything that went into the copy is as it was."""
    for folder, (changed, files) in copy.folders.items():
        if found.get(folder) != changed:
            return False
        for name, size, at in files:
            try:
                now = os.lstat(f"{folder}/{name}")
            except OSError:
                return False
            if (now.st_size, now.st_mtime_ns) != (size, at):
                return False
    return True


def _worth_it(
    root: Path, found: Mapping[str, int], copies: Collection[Copy], *, limits: Limits
) -> tuple[list[str], bool]:
    """The folders to copy now, in order, and whether those of all copies are among them."""
    held = {folder for copy in copies for folder in copy.folders}
    if len(found) - len(held) < limits.many or (root / FOLDER).is_symlink():
        return [], False
    looked_at = {folder for copy in copies for folder in copy.left}
    latest = time.time_ns() - round(SETTLED_SECONDS * 1e9)
    fresh = {
        folder
        for folder in found.keys() - held - looked_at
        if found[folder] <= latest and not _goes_on(folder)
    }
    if len(fresh) < limits.many:
        return [], False
    again = len(copies) >= limits.copies
    return sorted(fresh | held if again else fresh), again


def _goes_on(folder: str) -> bool:
    return os.path.exists(f"{os.path.dirname(os.path.dirname(folder))}/{running.NAME}")


def _sizes(folder: str) -> Sizes:
    found: Sizes = []
    for path in manifest.current(folder):
        now = os.lstat(path)
        found.append([os.path.basename(path), now.st_size, now.st_mtime_ns])
    return found


def _gathered(
    root: Path,
    table: str,
    folders: Mapping[str, int],
    *,
    limits: Limits,
    copying: Callable[[str, int], None] | None,
) -> Copy | None:
    """A copy of the folders' files; None where they are too large, or nothing can be written."""
    try:
        sizes = {folder: (changed, _sizes(folder)) for folder, changed in folders.items()}
        total = sum(size for _, files in sizes.values() for _, size, _ in files)
        if total > limits.most_bytes:
            return None
        if copying is not None:
            copying(table, len(sizes))
        return written(root, table, sizes)
    except OSError:
        return None


def _tidy(root: Path, table: str, *, keep: Iterable[Copy]) -> None:
    """Remove the table's other copies; whoever reads one of them asks again."""
    kept = {Path(copy.path).stem for copy in keep}
    for path in (root / FOLDER).glob(f"{table}-*"):
        if path.stem not in kept:
            with suppress(OSError):
                path.unlink()
