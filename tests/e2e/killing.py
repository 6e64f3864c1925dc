"""Kills the process it is in, as ``kill -9`` would: at a file, in a function, or after some time.

A point is one of these, with the number of the occurrence that is the last:

    {"rename": "*/turns/*.parquet", "nth": 3}    before the third such file gets its name
    {"remove": "*/metrics/*", "nth": 1}          before the first such file is removed
    {"file": 40}                                 before the 40th thing done to any file of the run
    {"call": "agentrecipes.training.stage:weights", "nth": 2}     as the second call begins
    {"return": "agentrecipes.experiment:evaluate", "nth": 2}      as the second call ends
    {"seconds": 3.5}                             after so much CPU time

Nothing in the package knows of this: Python's audit events tell of files, calls are wrapped here.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from fnmatch import fnmatch
from functools import reduce, wraps
from importlib import import_module
from typing import Any

COUNTED = ("os.rename", "os.remove", "os.rmdir", "os.mkdir", "os.truncate")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def counted(most: int) -> Callable[[], None]:
    """A function that kills at its `most`-th call."""
    seen = 0

    def once() -> None:
        nonlocal seen
        seen += 1
        if seen == most:
            die()

    return once


def arm(point: dict[str, Any], folder: str) -> None:
    """Have this process killed at `point`; files count only in `folder`."""
    nth = point.get("nth", 1)
    if "seconds" in point:
        signal.signal(signal.SIGPROF, signal.SIG_DFL)  # which ends the process, and asks nobody
        signal.setitimer(signal.ITIMER_PROF, point["seconds"])
    elif "call" in point or "return" in point:
        wrap(point.get("call") or point["return"], counted(nth), first="call" in point)
    else:
        once = counted(point.get("file", nth))
        listen(lambda event, path: once() if meant(point, event, path) else None, folder)


def meant(point: dict[str, Any], event: str, path: str) -> bool:
    """Whether something that happens to a file counts for a point."""
    if "rename" in point:
        return event == "os.rename" and fnmatch(path, point["rename"])
    if "remove" in point:
        return event == "os.remove" and fnmatch(path, point["remove"])
    return True


def listen(happens: Callable[[str, str], None], folder: str) -> None:
    """Call `happens` before anything is written, renamed or removed in `folder`."""

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR):
                return
        elif event in COUNTED:
            path = arguments[1] if event == "os.rename" else arguments[0]
        else:
            return
        text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
        if text.startswith(folder):
            happens(event, text)

    sys.addaudithook(hook)


def wrap(place: str, once: Callable[[], None], *, first: bool) -> None:
    """Count the calls of ``module:name.name``, as they begin or as they end."""
    module, _, names = place.partition(":")
    *outer, name = names.split(".")
    holder: Any = reduce(getattr, outer, import_module(module))
    inner = getattr(holder, name)

    @wraps(inner)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if first:
            once()
        made = inner(*args, **kwargs)
        if not first:
            once()
        return made

    setattr(holder, name, wrapped)


def count(folder: str) -> Callable[[], dict[str, float]]:
    """What a run offers to be killed at: files touched in `folder`, and seconds of CPU."""
    touched: list[str] = []
    listen(lambda event, path: touched.append(path), folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_utime

    def told() -> dict[str, float]:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return {"file": len(touched), "seconds": used.ru_utime + used.ru_stime - before}

    return told
