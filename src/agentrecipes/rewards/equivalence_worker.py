"""Compares mathematical answers with Math-Verify; a program of its own, which may be ended.

It reads lines of JSON ``[gold, answer, seconds]`` and writes ``true`` or ``false`` for each. sympy
can take for ever, or all memory, over an answer that means to.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from types import FrameType
from typing import NoReturn

MEMORY = 4 << 30  # bytes of address space


def main() -> None:
    """Answer until there is nothing more to read."""
    import math_verify

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    signal.signal(signal.SIGPROF, _late)
    print("ready", flush=True)
    for line in sys.stdin:
        gold, answer, seconds = json.loads(line)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            one = math_verify.parse(f"${gold}$", parsing_timeout=None)
            other = math_verify.parse(f"${answer}$", parsing_timeout=None)
            same = bool(math_verify.verify(one, other, timeout_seconds=None))
        except Exception:  # the boundary to sympy, which is asked to read anything
            same = False
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        print(json.dumps(same), flush=True)


def _late(signum: int, frame: FrameType | None) -> NoReturn:
    raise TimeoutError


if __name__ == "__main__":
    main()
