"""The smallest of several rewards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.algebra import Held, Range, values, whole, whole_range
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Minimum(Component):
    """The smallest of `of`; null where one of them is. A value per turn counts as its sum."""

    of: Annotated[tuple[Held, ...], Field(min_length=2)]  # two rewards or more

    reads: ClassVar[frozenset[str]] = frozenset()  # those that it holds say what they read
    gives: ClassVar[Gives] = "trajectory"

    @property
    def held(self) -> tuple[Any, ...]:
        """The rewards inside."""
        return self.of

    @property
    def range(self) -> Range:
        """The smallest low end and the smallest high end."""
        lows, highs = zip(*map(whole_range, self.of), strict=True)
        return min(lows), min(highs)

    def rules(self, stage: Any) -> Iterable[Problem]:
        """Every reward must be able to be the smallest."""
        ceiling = self.range[1]
        for place, part in enumerate(self.of):
            low, high = whole_range(part)
            if low >= ceiling and high > ceiling:
                found = f"{part.part_name} is never the smallest: it is worth {low:g} to {high:g}"
                hint = f"Leave it out: another is never worth more than {ceiling:g}."
                yield Problem("no_effect", f"of[{place}]", found, hint)

    def score(self, view: View) -> float | None:
        """One number."""
        found = values(self.of, view)
        return None if found is None else min(map(whole, found))
