"""Rewards multiplied, so that one of 0 leaves nothing of the others."""

from __future__ import annotations

from functools import reduce
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.algebra import Held, Range, Value, gives_of, scaled, times, values
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Product(Component):
    """The product of `of`; null where one of them is, even beside a 0.

    Values per turn are multiplied turn by turn, and each by the single numbers.
    """

    of: Annotated[tuple[Held, ...], Field(min_length=2)]  # two rewards or more

    reads: ClassVar[frozenset[str]] = frozenset()  # those that it holds say what they read

    @property
    def held(self) -> tuple[Any, ...]:
        """The rewards inside."""
        return self.of

    @property
    def gives(self) -> Gives:
        """One per turn where a factor does."""
        return gives_of(self.of)

    @property
    def range(self) -> Range:
        """The products of the ends."""
        ranges: list[Range] = [part.range for part in self.of]
        return reduce(times, ranges)

    def score(self, view: View) -> Value | None:
        """One number, or one per turn."""
        found = values(self.of, view)
        return None if found is None else reduce(_multiplied, found)


def _multiplied(one: Value, other: Value) -> Value:
    if not isinstance(other, list):
        return scaled(one, other)
    if not isinstance(one, list):
        return scaled(other, one)
    return [a * b for a, b in zip(one, other, strict=True)]
