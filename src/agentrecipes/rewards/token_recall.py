"""How much of a gold answer's words stand in a text. Deep-DxSearch (2025).

https://arxiv.org/abs/2508.15746, its rewards for searches and for the answer.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import tags
from agentrecipes.rewards.normalisation import normalise
from agentrecipes.rewards.protocol import Gives, View

ITEM = re.compile(r"[,;\n]")


@component("reward")
class TokenRecall(Component):
    """(words of the gold answer found / its words) ^ (1 / root), the best over gold answers.

    Words are compared after normalisation and without one final s, once on both sides. Null without
    a gold answer that has words.
    """

    of: Literal["answer", "searches"] = "answer"  # searches: what stands in pairs of the tag `call`
    call: str = "search"
    root: Annotated[int, Field(ge=1)] = 1  # 3: half of the words are worth 0.79
    most_items: Annotated[int, Field(ge=1)] | None = (
        None  # of a search, separated by commas; one that lists more is worth nothing
    )

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """In [0, 1]; a trajectory without what is looked at is worth 0."""
        golds = [words for gold in view.task.gold_answers if (words := _words(gold))]
        if not golds:
            return None
        found = _words(self._text(view))
        recall = max((found & gold).total() / gold.total() for gold in golds)
        return float(recall ** (1.0 / self.root))

    def _text(self, view: View) -> str:
        if self.of == "answer":
            return view.answer or ""
        asked = tags.bodies(tags.written(view), self.call)
        most = self.most_items
        few = [each for each in asked if most is None or len(ITEM.split(each.strip())) <= most]
        return "\n".join(few)


def _words(text: str) -> Counter[str]:
    return Counter(word.removesuffix("s") or word for word in normalise(text).split())
