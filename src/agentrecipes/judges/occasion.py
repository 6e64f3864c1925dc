"""On what occasion a judge is asked: what has been said so far, until when, where replies stay.

The scoring of a trajectory opens one around each reward, so that a judge deep inside a gate is
heard, limited and kept like any other.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from agentrecipes.records import Judgement


@dataclass(frozen=True, slots=True)
class Occasion:
    """One reward of one trajectory, while it is scored."""

    part: str = ""  # the reward's label
    cache: Path | None = None  # of judges that name none of their own
    deadline: float = float("inf")  # of time.monotonic()
    heard: list[Judgement] = field(default_factory=list)
    replies: dict[str, Judgement] = field(
        default_factory=dict
    )  # key → reply: nobody is asked twice

    @property
    def seconds_left(self) -> float:
        """Until the deadline; infinite without one."""
        return self.deadline - time.monotonic()

    @property
    def problem(self) -> str:
        """Why the first reply that has no value has none; "" where all have one."""
        return next((each.problem for each in self.heard if each.problem), "")


_current: ContextVar[Occasion | None] = ContextVar("occasion", default=None)


def current() -> Occasion:
    """The occasion of this thread; one that nobody listens to, outside of scoring."""
    return _current.get() or Occasion()


@contextmanager
def opened(occasion: Occasion) -> Iterator[Occasion]:
    """Ask judges on this occasion, for as long as the block lasts."""
    token = _current.set(occasion)
    try:
        yield occasion
    finally:
        _current.reset(token)
