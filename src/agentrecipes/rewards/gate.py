"""One reward decides whether others count."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar

from pydantic import Field, Strict

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.algebra import (
    Held,
    Range,
    Value,
    WeightedReward,
    added,
    added_range,
    computed,
    gives_of,
    hull,
    scaled,
    values,
    whole,
    whole_range,
)
from agentrecipes.rewards.protocol import Gives, View

Sum = Annotated[tuple[WeightedReward, ...], Field(min_length=1)]
Number = Annotated[float, Strict(), Field(allow_inf_nan=False)]


@component("reward")
class Gate(Component):
    """The weighted sum of `then` where `when` is worth at least `at_least`, else `else`.

    ``{name: gate, when: format_valid, at_least: 1, else: -1, then: [exact_match]}``. What does not
    count is not looked at; null where `when`, or a part that counts, could not be computed. A value
    per turn is kept, with single numbers on the last turn; of `when` the sum decides.
    """

    when: Held  # the reward that decides
    at_least: float = 1.0  # what `when` must be worth for the gate to open
    then: Sum  # what counts behind the gate, each with its `weight`
    else_: Annotated[Number | Sum, Field(alias="else")]  # what counts otherwise: a number, or parts

    reads: ClassVar[frozenset[str]] = frozenset()  # those that it holds say what they read

    @property
    def held(self) -> tuple[Any, ...]:
        """All the rewards inside."""
        return (self.when, *(each.part for each in (*self.then, *self._otherwise)))

    @property
    def gives(self) -> Gives:
        """One per turn where either side does."""
        return gives_of(each.part for each in (*self.then, *self._otherwise))

    @property
    def range(self) -> Range:
        """What either side can be worth."""
        return hull(self._range(side) for side in (self.then, self.else_))

    @property
    def _otherwise(self) -> tuple[WeightedReward, ...]:
        return self.else_ if isinstance(self.else_, tuple) else ()

    def _range(self, side: float | tuple[WeightedReward, ...]) -> Range:
        if not isinstance(side, tuple):
            return side, side
        return added_range([(each.part, each.weight) for each in side])

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The gate must be able to open and to stay shut."""
        low, high = whole_range(self.when)
        worth = f"{self.when.part_name} is worth {low:g} to {high:g}"
        if self.at_least > high:
            found = f"the gate never opens: {worth}, and at_least is {self.at_least:g}"
            yield Problem("contradiction", "at_least", found, f"Write at most {high:g}.")
        elif self.at_least <= low:
            found = f"the gate is always open: {worth}, and at_least is {self.at_least:g}"
            yield Problem("no_effect", "at_least", found, f"Write more than {low:g}.")

    def score(self, view: View) -> Value | None:
        """The sum of the side that counts."""
        deciding, _ = computed(self.when, view, self.when.part_name)
        if deciding is None:
            return None
        side = self.then if whole(deciding) >= self.at_least else self.else_
        if not isinstance(side, tuple):
            return side
        found = values((each.part for each in side), view)
        if found is None:
            return None
        pairs = zip(found, side, strict=True)
        return added([scaled(value, each.weight) for value, each in pairs])
