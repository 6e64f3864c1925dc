"""Asks Math-Verify whether two answers are the same, and does not wait for ever."""

from __future__ import annotations

import atexit
import json
import select
import subprocess
import sys
import threading
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

from agentrecipes.errors import MissingExtra

START_SECONDS = 120.0  # sympy alone takes seconds to import
PATIENCE = (
    4.0  # times the limit in CPU time: a machine with other work, or a step that no limit ends
)
WORKER = Path(__file__).with_name("equivalence_worker.py")


def require() -> None:
    """Hold that Math-Verify is installed.

    Raises:
        MissingExtra: it is not.
    """
    if find_spec("math_verify") is None:
        raise MissingExtra(
            "rewards: math_verify needs Math-Verify. "
            "Install it with: pip install 'agentrecipes[envs]'."
        )


@lru_cache(maxsize=65536)
def equivalent(gold: str, answer: str, seconds: float) -> bool:
    """Whether they are equal; what takes more than `seconds` of CPU time to tell is not.

    Raises:
        MissingExtra: Math-Verify is not installed.
    """
    return _comparer().compare(gold, answer, seconds)


@lru_cache(maxsize=1)
def _comparer() -> Comparer:
    comparer = Comparer()
    atexit.register(comparer.close)
    return comparer


class Comparer:
    """One process that compares; one that took too long is ended, and another started."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def compare(self, gold: str, answer: str, seconds: float) -> bool:
        """Whether the process says so in time.

        Raises:
            MissingExtra: Math-Verify is not installed.
        """
        with self._lock:
            process = self._process or self._started()
            assert process.stdin is not None
            try:
                process.stdin.write(json.dumps([gold, answer, seconds]) + "\n")
                process.stdin.flush()
                said = _line(process, PATIENCE * seconds)
            except OSError:  # it is gone
                said = ""
            if not said:
                self.close()
            return said == "true"

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()

    def _started(self) -> subprocess.Popen[str]:
        require()
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        # -P: the worker's folder holds modules that are called like libraries
        command = [sys.executable, "-P", str(WORKER)]
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nothing, text=True)
        self._process = process
        if _line(process, START_SECONDS) != "ready":
            self.close()
            raise MissingExtra(
                "rewards: Math-Verify is installed, but cannot be imported. "
                "Install it again with: pip install 'agentrecipes[envs]'."
            )
        return process


def _line(process: subprocess.Popen[str], seconds: float) -> str:
    """The next line, or nothing where none comes in time."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    return process.stdout.readline().strip() if ready else ""
