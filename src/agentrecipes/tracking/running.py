"""A mark in the run folder while a process works on it: one writer, and what a kill left behind.

``.running`` is held with a lock that ends with its process, however that ends. The file itself goes
last of all, so that a run which was killed on its last metres does not pass for a finished one.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentrecipes.errors import Problem, RecipeError

NAME = ".running"


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the run in `folder`; the mark stays when what happens inside raises or is killed.

    Raises:
        RecipeError: another process works on it.
    """
    mark = folder / NAME
    there = mark.exists()
    folder.mkdir(parents=True, exist_ok=True)
    with mark.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RecipeError([_taken(folder)]) from None
        except OSError:
            pass  # a file system without locks: then nothing guards
        try:
            yield
        except BaseException:
            if not there:
                mark.unlink(missing_ok=True)
            raise
        mark.unlink(missing_ok=True)


def was_left(folder: Path) -> bool:
    """Whether somebody works on the run, or was killed while doing so."""
    return (folder / NAME).exists()


def _taken(folder: Path) -> Problem:
    return Problem(
        code="running",
        path="",
        message=f"another process works on the run in {str(folder)!r}",
        suggestion="Wait for its end, or stop it; then use --resume.",
    )
