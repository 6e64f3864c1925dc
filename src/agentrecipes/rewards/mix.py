"""Two rewards, of which one gives way to the other."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.algebra import (
    Held,
    Range,
    Value,
    added,
    added_range,
    gives_of,
    scaled,
    values,
)
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Mix(Component):
    """``share · of + (1 - share) · rest``; null where one of them is.

    Atom-Searcher (2025, https://arxiv.org/abs/2508.12800) lets a reward for thoughts give way to
    the answer's F1: ``{name: mix, of: …, rest: token_f1, share: {schedule: linear, from: 0.5, to:
    0.0, over: 200}}``. A value per turn is kept, with single numbers on the last turn.
    """

    of: Held  # the reward that has the share
    rest: Held  # the reward that has the rest
    share: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5  # of the first; usually a schedule

    reads: ClassVar[frozenset[str]] = frozenset()  # those that it holds say what they read

    @property
    def held(self) -> tuple[Any, ...]:
        """The rewards inside."""
        return self.of, self.rest

    @property
    def gives(self) -> Gives:
        """One per turn where either does."""
        return gives_of(self.held)

    @property
    def range(self) -> Range:
        """The ends, mixed."""
        return added_range([(self.of, self.share), (self.rest, 1.0 - self.share)])

    def score(self, view: View) -> Value | None:
        """One number, or one per turn."""
        found = values(self.held, view)
        if found is None:
            return None
        first, second = found
        return added([scaled(first, self.share), scaled(second, 1.0 - self.share)])
