"""The greatest of several rewards."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.algebra import Held, Range, values, whole, whole_range
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Maximum(Component):
    """The greatest of `of`; null where one of them is. A value per turn counts as its sum."""

    of: Annotated[tuple[Held, ...], Field(min_length=2)]  # two rewards or more

    reads: ClassVar[frozenset[str]] = frozenset()  # those that it holds say what they read
    gives: ClassVar[Gives] = "trajectory"

    @property
    def held(self) -> tuple[Any, ...]:
        """The rewards inside."""
        return self.of

    @property
    def range(self) -> Range:
        """The greatest low end and the greatest high end."""
        lows, highs = zip(*map(whole_range, self.of), strict=True)
        return max(lows), max(highs)

    def rules(self, stage: Any) -> Iterable[Problem]:
        """Every reward must be able to be the greatest."""
        floor = self.range[0]
        for place, part in enumerate(self.of):
            low, high = whole_range(part)
            if high <= floor and low < floor:
                found = f"{part.part_name} is never the greatest: it is worth {low:g} to {high:g}"
                hint = f"Leave it out: another is never worth less than {floor:g}."
                yield Problem("no_effect", f"of[{place}]", found, hint)

    def score(self, view: View) -> float | None:
        """One number."""
        found = values(self.of, view)
        return None if found is None else max(map(whole, found))
