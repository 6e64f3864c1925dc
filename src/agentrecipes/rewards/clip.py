"""A reward kept between two bounds."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, ClassVar

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.algebra import Held, Range, computed, whole, whole_range
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Clip(Component):
    """`of`, but at least `low` and at most `high`. A value per turn counts as its sum."""

    of: Held  # one reward
    low: float | None = None  # null: no bound
    high: float | None = None  # null: no bound

    reads: ClassVar[frozenset[str]] = frozenset()  # that which it holds says what it reads
    gives: ClassVar[Gives] = "trajectory"

    @property
    def held(self) -> tuple[Any, ...]:
        """The reward inside."""
        return (self.of,)

    @property
    def range(self) -> Range:
        """The ends of the reward inside, clipped."""
        low, high = whole_range(self.of)
        return self._clipped(low), self._clipped(high)

    def rules(self, stage: Any) -> Iterable[Problem]:
        """There is a bound, the bounds leave room, and each of them cuts something off."""
        least, most = whole_range(self.of)
        worth = f"{self.of.part_name} is worth {least:g} to {most:g}"
        if self.low is not None and self.high is not None and self.low >= self.high:
            found = f"nothing lies between low: {self.low:g} and high: {self.high:g}"
            yield Problem("contradiction", "low", found, f"Write less than {self.high:g}.")
        elif self.low is None and self.high is None:
            yield Problem("missing_key", "", "clip has neither low nor high", "Write `high: 1`.")
        elif self.low is not None and self.low <= least:
            found = f"low has no effect: {worth}"
            yield Problem("no_effect", "low", found, f"Write more than {least:g}.")
        elif self.high is not None and self.high >= most:
            found = f"high has no effect: {worth}"
            yield Problem("no_effect", "high", found, f"Write less than {most:g}.")

    def score(self, view: View) -> float | None:
        """One number."""
        value, _ = computed(self.of, view, self.of.part_name)
        return None if value is None else self._clipped(whole(value))

    def _clipped(self, value: float) -> float:
        low = -math.inf if self.low is None else self.low
        high = math.inf if self.high is None else self.high
        return min(max(value, low), high)
