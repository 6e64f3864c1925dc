"""A number that comes with the task."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Given(Component):
    """The task's field `field`, from `low` to `high`; null where the task lacks it.

    It may come from the data, or be set by who posed the task: M-GRPO (2025,
    https://arxiv.org/abs/2511.13288) tells a helper's trajectory whether the main agent was right.
    """

    field: Annotated[str, Field(min_length=1)]
    low: float = 0.0
    high: float = 1.0

    reads: ClassVar[frozenset[str]] = frozenset()  # a data set cannot know what is set later
    gives: ClassVar[Gives] = "trajectory"

    @property
    def range(self) -> tuple[float, float]:
        """As the recipe says; a value outside of it is null."""
        return self.low, self.high

    def score(self, view: View) -> float | None:
        """The number; true is 1 and false is 0."""
        value = view.task.data.get(self.field)
        if not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value)
