"""Which files hold a table of all runs: those of the runs, or a copy of many of them in one.

A question to a thousand files spends its time on opening them. So where more than `MANY` runs are
over, their files of a table are copied into one, in ``<runs-dir>/.gathered``, under the names of
their runs' folders. Beside each copy an index says what went into it, with sizes and times; a copy
counts only while all of that is as it was. It is a cache: whoever asks makes it where that is
needed, and it may be removed at any time.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.tracking import manifest, replacing, running
from agentrecipes.tracking.columns import COLUMNS, schema

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = ".gathered"
VERSION = 2  # of what a copy holds
SETTLED_SECONDS = 60.0  # since a folder's last change; one that changes would spoil its copy
BATCH_ROWS = 16 * 32_768  # held in memory, and written at once
GROUP_ROWS = 32_768  # of a row group: a question to one run reads the groups that hold it alone

MANY = 64


@dataclass(frozen=True, slots=True)
class Limits:
    """What is copied: ``Limits(many=64, copies=8, most_bytes=2**29)``."""

    many: int = MANY  # folders of one table that are worth a copy
    copies: int = 8  # of one table; the next one takes in all of them
    most_bytes: int = 2**29  # of one copy's files: token ids of a large store stay where they are


Sizes = list[list[Any]]
"""[name, bytes, nanoseconds of its last change] of each file of a folder."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One file made of many, and what it was made of."""

    path: str
    folders: Mapping[str, tuple[int, Sizes]]  # folder → time of its last change, its files
    left: frozenset[str]  # folders that were looked at and cannot be copied


def current(runs_dir: Path, table: str, *, limits: Limits | None = None) -> list[Path]:
    """Paths of files that together hold every row of the table once; none that lies elsewhere.

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
    if worth and (copy := _gathered(root, table, folders, limits=limits)):
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
        copy = _read(path)
        if copy is not None and taken.isdisjoint(copy.folders) and _holds(copy, found):
            copies.append(copy)
            taken |= copy.folders.keys()
    return copies


def _read(index: Path) -> Copy | None:
    """The copy that an index speaks of; None where one of the two is missing or not whole."""
    path = index.with_suffix(".parquet")
    try:
        told = json.loads(index.read_bytes())
        root = index.parent.parent
        folders = {f"{root}/{folder}": (at, files) for folder, (at, files) in told["made"].items()}
        left = frozenset(f"{root}/{folder}" for folder in told["left"])
        is_whole = not path.is_symlink() and path.stat().st_size == told["bytes"]
        is_whole = is_whole and told["version"] == VERSION
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Copy(str(path), folders, left) if is_whole else None


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


def _gathered(root: Path, table: str, folders: Mapping[str, int], *, limits: Limits) -> Copy | None:
    """A copy of the folders' files; None where they are too large, or nothing can be written."""
    try:
        sizes = {folder: (changed, _sizes(folder)) for folder, changed in folders.items()}
        total = sum(size for _, files in sizes.values() for _, size, _ in files)
        return _written(root, table, sizes) if total <= limits.most_bytes else None
    except OSError:
        return None


def _written(root: Path, table: str, sizes: Mapping[str, tuple[int, Sizes]]) -> Copy:
    """Write the copy and, once it is in its place, its index.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    names = {folder: folder.removeprefix(f"{root}/") for folder in sizes}
    told = json.dumps({names[folder]: each for folder, each in sizes.items()}, sort_keys=True)
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    path = root / FOLDER / f"{table}-{digest}.parquet"
    left: list[str] = []
    with replacing.replacing(path) as partial:
        _write(partial, table, _tables(table, sizes, left))
        size = partial.stat().st_size
    made = {folder: each for folder, each in sizes.items() if folder not in left}
    index = {
        "version": VERSION,
        "bytes": size,
        "made": {names[folder]: each for folder, each in made.items()},
        "left": [names[folder] for folder in left],
    }
    replacing.write(path.with_suffix(".json"), json.dumps(index).encode())
    return Copy(str(path), made, frozenset(left))


def _tables(
    table: str, sizes: Mapping[str, tuple[int, Sizes]], left: list[str]
) -> Iterator[pa.Table]:
    """The rows of each folder; one with a file that is not plainly this table goes to `left`."""
    import pyarrow as pa

    wanted = schema(table)
    for folder, (_, files) in sizes.items():
        try:
            rows = pa.concat_tables(
                [wanted.empty_table(), *(_rows(f"{folder}/{name}", wanted) for name, _, _ in files)]
            )
            yield _called(rows, folder.split("/")[-3])
        except (OSError, ValueError, pa.ArrowException):
            left.append(folder)  # whoever reads it says what is wrong with it


def _called(rows: pa.Table, run: str) -> pa.Table:
    """`rows` under the name of the folder that they lie in."""
    import pyarrow as pa

    index = rows.schema.get_field_index("run")
    names = pa.repeat(pa.scalar(run, rows.schema.field(index).type), rows.num_rows)
    return rows.set_column(index, rows.schema.field(index), names)


def _rows(path: str, wanted: pa.Schema) -> pa.Table:
    """A file's rows, with nulls in the columns that an older version did not write.

    Raises:
        ValueError: it has columns that this version does not know, or knows otherwise.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        own = file.schema_arrow
        if any(name not in wanted.names for name in own.names):
            raise ValueError(f"{path}: unknown columns")
        if any(own.field(name).type != wanted.field(name).type for name in own.names):
            raise ValueError(f"{path}: columns of other types")
        rows = file.read()
    columns = [
        rows[each.name] if each.name in own.names else pa.nulls(rows.num_rows, each.type)
        for each in wanted
    ]
    return pa.table(columns, schema=wanted)


def _write(path: Path, table: str, tables: Iterable[pa.Table]) -> None:
    """Write the tables' rows; metrics by name, since a question asks for one of many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    order = [(name, "ascending") for name in ("name", "run", "stage", "step")]
    # Numbers that are seldom equal have no use for a dictionary: without one they read faster.
    names = [name for name, kind in COLUMNS[table].items() if kind in ("VARCHAR", "BIGINT")]

    def write(rows: pa.Table) -> None:
        rows = rows.sort_by(order) if table == "metrics" else rows
        writer.write_table(rows, row_group_size=GROUP_ROWS)

    waiting: list[pa.Table] = []
    with pq.ParquetWriter(path, schema(table), compression="zstd", use_dictionary=names) as writer:
        for each in tables:
            waiting.append(each)
            if sum(one.num_rows for one in waiting) >= BATCH_ROWS:
                write(pa.concat_tables(waiting))
                waiting = []
        write(pa.concat_tables([schema(table).empty_table(), *waiting]))


def _tidy(root: Path, table: str, *, keep: Iterable[Copy]) -> None:
    """Remove the table's other copies; whoever reads one of them asks again."""
    kept = {Path(copy.path).stem for copy in keep}
    for path in (root / FOLDER).glob(f"{table}-*"):
        if path.stem not in kept:
            with suppress(OSError):
                path.unlink()
