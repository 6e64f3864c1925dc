"""SQuAD's token F1, with HotpotQA's rule for yes and no. https://arxiv.org/abs/1606.05250."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.normalisation import overlap
from agentrecipes.rewards.protocol import Gives, View
from agentrecipes.rewards.quantities import boxed


@component("reward")
class TokenF1(Component):
    """The best F1 of the answer's words with any gold answer's; null without gold answers."""

    ignore_articles: bool = True
    boxed: bool = False  # of the answer only what stands in the last \\boxed{}, if there is one

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
        articles, answer = self.ignore_articles, boxed(view.answer) if self.boxed else view.answer
        return max(overlap(answer, gold, ignore_articles=articles) for gold in golds)
