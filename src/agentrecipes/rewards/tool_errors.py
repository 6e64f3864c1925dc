"""How often tools answered with an error. rStar2-Agent (2025)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class ToolErrors(Component):
    """The share of observations that hold `mark` in any case; `without` where there is none.

    Two of four observations with "Error" in them are 0.5. rStar2-Agent (2025,
    https://arxiv.org/abs/2508.20722) counts errors so when it keeps the cleanest successes; as a
    reward it wants a negative weight.
    """

    mark: Annotated[str, Field(min_length=1)] = "error"  # what an observation of an error holds
    without: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5  # what no observation at all is worth

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """In [0, 1]."""
        seen = [text.casefold() for text in view.observations if text.strip()]
        if not seen:
            return self.without
        return sum(self.mark.casefold() in text for text in seen) / len(seen)
