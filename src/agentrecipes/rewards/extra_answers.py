"""How many answers were given beyond the first. rStar2-Agent (2025)."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import tags
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class ExtraAnswers(Component):
    """``(answers - 1) / turns``, at most 1; 1 too where `tag` is missing or left open.

    Two answers in four turns are 0.25. It is the form half of the penalty by which rStar2-Agent
    (2025, https://arxiv.org/abs/2508.20722) tells clean successes from others; as a reward it wants
    a negative weight.
    """

    tag: Annotated[str, Field(min_length=1)] = "answer"

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """In [0, 1]; looks at what the policy wrote alone."""
        text = tags.written(view)
        if not tags.is_paired(text, self.tag):
            return 1.0
        return min((tags.opened(text, self.tag) - 1) / len(view.actions), 1.0)
