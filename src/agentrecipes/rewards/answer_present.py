"""Whether there is an answer at all."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class AnswerPresent(Component):
    """1 for a trajectory that answered with more than blanks, right or wrong; else 0."""

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """0 or 1; gold answers are not looked at."""
        return float(view.answer is not None and bool(view.answer.strip()))
