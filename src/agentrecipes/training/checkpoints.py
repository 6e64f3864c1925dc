"""Checkpoints: all that a run needs to go on, in one file that is whole or not there.

``<stage index>-<steps>.ckpt`` holds tensors and plain values; the ``.json`` beside it holds its
SHA-256 and is renamed into place last, so that a checkpoint without one never existed. Only files
whose hash is right are unpickled, and only into tensors and plain values.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

import torch

from agentrecipes.errors import CheckFailed
from agentrecipes.tracking.replacing import replacing, write
from agentrecipes.training import ranks

FACTS = "[0-9]*-[0-9]*.json"  # the files with the hashes


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that was read."""

    path: Path
    state: Mapping[str, Any]
    passed_over: tuple[str, ...]  # newer ones that were damaged, and why


def save(folder: Path, state: Mapping[str, Any], *, stage: int, done: int, keep: int) -> Path:
    """Save `state` and drop all but the newest `keep` checkpoints; rank 0 does, for all ranks.

    Raises:
        OSError: it cannot be written; the older ones stay.
    """
    path = folder / f"{stage:02d}-{done:08d}.ckpt"
    if not ranks.leads():
        return path
    facts = {"sha256": _write(path, dict(state)), "stage": stage, "done": done}
    try:
        write(path.with_suffix(".json"), json.dumps(facts).encode())
    except OSError:
        path.unlink(missing_ok=True)  # it never existed, and on a full disk others need its space
        raise
    _drop(sorted(folder.glob(FACTS))[:-keep])
    return path


def newest(folder: Path) -> Found | None:
    """The newest checkpoint that is whole, or None where there is none."""
    passed_over: list[str] = []
    for facts_path in sorted(folder.glob(FACTS), reverse=True):
        path = facts_path.with_suffix(".ckpt")
        fault = _fault(path, facts_path)
        if fault is None:
            state = torch.load(path, map_location="cpu", weights_only=True)
            return Found(path, state, tuple(passed_over))
        passed_over.append(f"{path.name}: {fault}")
    return None


def tidy(folder: Path, found: Found | None) -> None:
    """Remove what cannot be gone on from: everything newer than `found`, and halves.

    Left there, a damaged checkpoint would count as one of the newest that are kept.
    """
    last = "" if found is None else found.path.stem
    _drop(facts for facts in folder.glob(FACTS) if facts.stem > last)
    for path in folder.glob("*.ckpt"):
        if not path.with_suffix(".json").exists():
            path.unlink()


class _Hashing:
    """A file that is written and hashed in one go: no copy of all the weights stands in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self.digest = hashlib.sha256()
        self.error: OSError | None = None  # the disk's own words; torch has others
        self._file = file

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = self.error or error
            raise

    def flush(self) -> None:
        self._file.flush()


def _write(path: Path, value: Any) -> str:
    """Put what torch saves of `value` in its place; return its SHA-256.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    with replacing(path) as partial, partial.open("wb") as file:
        hashing = _Hashing(file)
        try:
            torch.save(value, cast("IO[bytes]", hashing))
        except RuntimeError:
            if hashing.error is None:
                raise
            raise hashing.error from None
        file.flush()
        os.fsync(file.fileno())
    return hashing.digest.hexdigest()


def _drop(facts: Iterable[Path]) -> None:
    for each in list(facts):
        each.unlink()
        each.with_suffix(".ckpt").unlink(missing_ok=True)


def _fault(path: Path, facts_path: Path) -> str | None:
    try:
        wanted = json.loads(facts_path.read_text(encoding="utf-8"))["sha256"]
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"cannot be read ({type(error).__name__})"
    return None if found == wanted else "its hash differs from the one it was saved with"


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write named tensors, atomically, and their hash beside them; tied ones are stored once."""
    digest = _write(path, {name: tensor.detach() for name, tensor in tensors.items()})
    write(_hash_of(path), digest.encode())


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read what `write_tensors` wrote.

    Raises:
        CheckFailed: it is not there, or is not what was written.
    """
    try:
        data, wanted = path.read_bytes(), _hash_of(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise CheckFailed(f"{path} cannot be read ({type(error).__name__})") from None
    if hashlib.sha256(data).hexdigest() != wanted:
        raise CheckFailed(f"{path}: its hash differs from the one it was written with")
    tensors: dict[str, torch.Tensor]
    tensors = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return tensors


def _hash_of(path: Path) -> Path:
    return path.with_suffix(".sha256")
