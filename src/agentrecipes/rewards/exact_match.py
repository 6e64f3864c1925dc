"""SQuAD's exact match. Rajpurkar et al. 2016, https://arxiv.org/abs/1606.05250."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.normalisation import matches
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class ExactMatch(Component):
    """1 if the normalised answer equals any gold answer, else 0; null without gold answers."""

    ignore_articles: bool = True

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """A trajectory that never answered scores 0."""
        golds = view.task.gold_answers
        if not golds:
            return None
        if view.answer is None:
            return 0.0
        return float(matches(view.answer, golds, ignore_articles=self.ignore_articles))
