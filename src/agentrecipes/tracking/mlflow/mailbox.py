"""A process of our own that does slow or stuck work elsewhere: messages go in, answers come back.

The caller never waits for the work itself: a thread feeds the pipe, another reads the answers. What
is not answered when patience ends is named, and the process is ended.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

MOST_WAITING = 20_000  # messages; a process that hangs must not fill the memory
LAST_WORDS = 400  # characters of its error output shown when it died


class Mailbox:
    """Runs a Python module and talks to it in lines of JSON.

    A message is a mapping; it is answered by a mapping with its number as ``done``. Every answer is
    handed to `answered`, in the listening thread.
    """

    def __init__(
        self, module: str, env: Mapping[str, str], *, answered: Callable[[dict[str, Any]], None]
    ) -> None:
        """Start the process, which does not see the terminal's interrupts.

        Raises:
            OSError: it cannot be started.
        """
        self._answered = answered
        self._words = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env=dict(env),
            start_new_session=True,
        )
        self._waiting: dict[int, str] = {}
        self._changed = threading.Condition()
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._number = 0
        self._over = False
        self._threads = [
            threading.Thread(target=work, name=f"{module} {work.__name__}", daemon=True)
            for work in (self._feed, self._listen)
        ]
        for thread in self._threads:
            thread.start()

    def put(self, message: Mapping[str, Any], what: str) -> bool:
        """Send a message without waiting; False when the process is gone or hopelessly behind.

        `what` names it in the list of unanswered ones.
        """
        with self._changed:
            if self._over or len(self._waiting) >= MOST_WAITING:
                return False
            self._number += 1
            self._waiting[self._number] = what
            line = json.dumps({**message, "number": self._number}, default=str)
        self._queue.put(line.encode() + b"\n")
        return True

    def wait(self, seconds: float) -> bool:
        """Whether every message was answered within `seconds`; at once when the process died."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or not self._waiting, timeout=seconds)
            return not self._waiting

    def unanswered(self) -> list[str]:
        with self._changed:
            return list(self._waiting.values())

    def last_words(self) -> str:
        """The end of what the process wrote to its error output, in one line."""
        if self._words.closed:
            return ""
        self._words.seek(0)
        lines = self._words.read().decode(errors="replace").split("\n")
        return " ".join(line.strip() for line in lines if line.strip())[-LAST_WORDS:]

    def close(self, seconds: float) -> None:
        """End the process: by closing its input and, after `seconds`, by force."""
        self._queue.put(None)
        try:
            self._process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        deadline = time.monotonic() + 1.0
        for thread in self._threads:
            thread.join(timeout=max(0.0, deadline - time.monotonic()))
        self._words.close()

    def _feed(self) -> None:
        pipe = self._process.stdin
        assert pipe is not None
        try:
            with pipe:
                while (line := self._queue.get()) is not None:
                    pipe.write(line)
                    pipe.flush()
        except OSError:
            return  # the process died: _listen notices

    def _listen(self) -> None:
        pipe = self._process.stdout
        assert pipe is not None
        with pipe:
            for line in pipe:
                answer = json.loads(line)
                self._answered(answer)
                with self._changed:
                    self._waiting.pop(answer.get("done"), None)
                    self._changed.notify_all()
        with self._changed:
            self._over = True
            self._changed.notify_all()
