"""What a task is worth by how often it is solved. SSP (2025)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.algebra import Held, Range, computed, hull, whole, whole_range
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Difficulty(Component):
    """``4 (low + s) (high - s)`` of the rate s that `of` gives; 0 where s is 0 or 1.

    With the defaults a task that is solved half of the time is worth 1, one in four or three in
    four 0.75. Search Self-play (2025, https://arxiv.org/abs/2510.18821) pays who poses questions:
    ``{name: difficulty, of: {name: given, field: solved}}``.
    """

    of: Held  # the rate, from 0 to 1
    low: float = 0.0  # the greater, the more hard tasks are worth
    high: float = 1.0  # the greater, the more easy tasks are worth

    reads: ClassVar[frozenset[str]] = frozenset()  # what it holds says what it reads
    gives: ClassVar[Gives] = "trajectory"

    @property
    def held(self) -> tuple[Any, ...]:
        """The reward inside."""
        return (self.of,)

    @property
    def range(self) -> Range:
        """The ends of the curve, its top if it lies between them, and 0."""
        top = (self.high - self.low) / 2
        ends = [self._worth(rate) for rate in (0.0, 1.0, *([top] if 0.0 < top < 1.0 else []))]
        return hull([(0.0, 0.0), *((end, end) for end in ends)])

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A rate lies between 0 and 1."""
        low, high = whole_range(self.of)
        if low < 0.0 or high > 1.0:
            found = f"{self.of.part_name} is worth {low:g} to {high:g}, which is no rate"
            yield Problem("contradiction", "of", found, "Hold a reward from 0 to 1.")

    def score(self, view: View) -> float | None:
        """One number; null where the rate is."""
        found, _ = computed(self.of, view, self.of.part_name)
        if found is None:
            return None
        rate, (low, high) = whole(found), self.range
        return min(max(self._worth(rate), low), high) if 0.0 < rate < 1.0 else 0.0

    def _worth(self, rate: float) -> float:
        return 4.0 * (self.low + rate) * (self.high - rate)
