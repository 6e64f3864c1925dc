"""Files that are whole or not there: written beside their place, then renamed into it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Where to write: what lies there at the end takes the place of `path`; nothing after an error.

    Raises:
        OSError: it cannot be put there; what stood at `path` stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.tmp")
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)  # on a full disk the rest needs its space
        raise


def write(path: Path, data: bytes) -> None:
    """Put a file with `data` in its place, on the disk before it has its name."""
    with replacing(path) as partial, partial.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
