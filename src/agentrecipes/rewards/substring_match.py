"""A gold answer inside the answer. Agent-R1 (2025, https://github.com/0russwest0/Agent-R1)."""

from __future__ import annotations

from typing import ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.rewards import tags
from agentrecipes.rewards.normalisation import holds, normalise, tellable
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class SubstringMatch(Component):
    """1 if the normalised text has any gold answer in it, else 0; null without gold answers.

    A gold answer of which normalisation leaves nothing (an article, a comma) is in every text; it
    does not count. The published rule takes "no" for found in "know"; `whole_words` does not.
    """

    of: Literal["answer", "tag", "turn"] = (
        "answer"  # tag: the first answer tag of the last turn; turn: all that it says
    )
    ignore_articles: bool = True
    whole_words: bool = False  # the gold answer must stand in the answer as whole words

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """A trajectory that never answered scores 0."""
        golds = tellable(view.task.gold_answers, ignore_articles=self.ignore_articles)
        if not golds:
            return None
        text = self._text(view)
        if text is None:
            return 0.0
        own = normalise(text, ignore_articles=self.ignore_articles)
        return float(any(holds(own, gold, whole_words=self.whole_words) for gold in golds))

    def _text(self, view: View) -> str | None:
        if self.of == "answer":
            return view.answer
        last = view.actions[-1] if view.actions else ""
        return last if self.of == "turn" else next(iter(tags.bodies(last, "answer")), None)
