"""Whether a process that was noted down is still there."""

from __future__ import annotations

import os
from pathlib import Path


def born(pid: int) -> str:
    """When a process began, in the kernel's ticks; "" where that cannot be told.

    Process numbers are given out again, so a number alone is nobody's name.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def is_alive(pid: int, since: str) -> bool:
    """Whether the process is there, and is the one that began at `since`; a dead child is not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return born(pid) == since and _state(pid) != "Z"


def _state(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[0]
