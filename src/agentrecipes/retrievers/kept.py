"""Arrays that are dear to compute, kept on disk under the hash of what they are made of.

A file is the SHA-256 of its contents, then an ``.npz``. One that is damaged is made again; a folder
that cannot be written is no obstacle.
"""

from __future__ import annotations

import hashlib
import io
import os
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

    Arrays = Mapping[str, np.ndarray]

HEX = 64  # bytes of the hash at a file's beginning
VARIABLE = "AGENTRECIPES_CACHE"


def folder() -> Path:
    """Where indexes are kept: under ``AGENTRECIPES_CACHE``, else in the user's cache."""
    cache = os.environ.get(VARIABLE) or "~/.cache/agentrecipes"
    return Path(cache).expanduser() / "indexes"


def key_of(*made_of: object) -> str:
    """SHA-256 (hex) of everything that an index depends on."""
    return hashlib.sha256(repr(made_of).encode()).hexdigest()


def arrays(key: str, build: Callable[[], Arrays]) -> Arrays:
    """What is kept under `key`; else what `build` makes, which is kept."""
    path = folder() / f"{key}.bin"
    found = _load(path)
    if found is None:
        found = build()
        with suppress(OSError):
            _save(path, found)
    return found


def _load(path: Path) -> Arrays | None:
    import numpy as np

    try:
        data = path.read_bytes()
        if hashlib.sha256(data[HEX:]).hexdigest().encode() != data[:HEX]:
            return None
        with np.load(io.BytesIO(data[HEX:]), allow_pickle=False) as kept:
            return dict(kept)
    except (OSError, ValueError):
        return None


def _save(path: Path, found: Arrays) -> None:
    import numpy as np

    held = io.BytesIO()
    np.savez(held, allow_pickle=False, **found)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        partial.write_bytes(hashlib.sha256(held.getvalue()).hexdigest().encode() + held.getvalue())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
