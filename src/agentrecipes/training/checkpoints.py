"""Checkpoints: all that a run needs to go on, in one file that is whole or not there.

``<stage index>-<steps>.ckpt`` holds tensors and plain values; the ``.json`` beside it holds its
SHA-256 and is renamed into place last, so that a checkpoint without one never existed. Only files
whose hash is right are unpickled, and only into tensors and plain values.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from agentrecipes.tracking.replacing import write
from agentrecipes.training import ranks


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that was read."""

    path: Path
    state: Mapping[str, Any]
    passed_over: tuple[str, ...]  # newer ones that were damaged, and why


def save(folder: Path, state: Mapping[str, Any], *, stage: int, done: int, keep: int) -> Path:
    """Save `state` and drop all but the newest `keep` checkpoints; rank 0 does, for all ranks."""
    path = folder / f"{stage:02d}-{done:08d}.ckpt"
    if not ranks.leads():
        return path
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    data = buffer.getvalue()
    write(path, data)
    facts = {"sha256": hashlib.sha256(data).hexdigest(), "stage": stage, "done": done}
    write(path.with_suffix(".json"), json.dumps(facts).encode())
    for old in sorted(folder.glob("*.json"))[:-keep]:
        old.unlink()
        old.with_suffix(".ckpt").unlink(missing_ok=True)
    return path


def newest(folder: Path) -> Found | None:
    """The newest checkpoint that is whole, or None where there is none."""
    passed_over: list[str] = []
    for facts_path in sorted(folder.glob("*.json"), reverse=True):
        path = facts_path.with_suffix(".ckpt")
        fault = _fault(path, facts_path)
        if fault is None:
            state = torch.load(path, map_location="cpu", weights_only=True)
            return Found(path, state, tuple(passed_over))
        passed_over.append(f"{path.name}: {fault}")
    return None


def _fault(path: Path, facts_path: Path) -> str | None:
    try:
        wanted = json.loads(facts_path.read_text(encoding="utf-8"))["sha256"]
        found = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError, KeyError, TypeError) as error:
        return f"cannot be read ({type(error).__name__})"
    return None if found == wanted else "its hash differs from the one it was saved with"


def write_tensors(path: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    """Write named tensors, atomically; tied ones are stored once each."""
    buffer = io.BytesIO()
    torch.save({name: tensor.detach().clone() for name, tensor in tensors.items()}, buffer)
    write(path, buffer.getvalue())


def read_tensors(path: Path) -> dict[str, torch.Tensor]:
    """Read what `write_tensors` wrote."""
    tensors: dict[str, torch.Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return tensors
