"""Ctrl-C, SIGTERM and SIGUSR1 as a wish to stop at the next safe place.

SIGUSR1 is what SLURM sends before it takes a machine away, with ``--signal=USR1@120``.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any

from agentrecipes.training import ranks

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class StopFlag:
    """While entered, the first signal asks to stop; a second Ctrl-C interrupts at once."""

    def __init__(self) -> None:
        self.asked = False
        self._before: dict[int, Any] = {}

    def agreed(self) -> bool:
        """Whether any rank was asked to stop: all ranks ask at the same time, and hear the same."""
        return ranks.any_of(self.asked)

    def __enter__(self) -> StopFlag:
        if threading.current_thread() is threading.main_thread():
            for number in SIGNALS:
                self._before[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.asked = True
