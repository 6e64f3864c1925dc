"""Whether look-ups by findings led to the right name. Deep-DxSearch (2025).

https://arxiv.org/abs/2508.15746, its reward for matching patient records.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import tags
from agentrecipes.rewards.normalisation import normalise, tellable
from agentrecipes.rewards.protocol import Gives, View

ITEM = re.compile(r"[,;\n]")
TAG = re.compile(r"</?\w+>")
NUMBER = re.compile(r"^\s*(?:\d+[.)]|[-*])\s+")

HIT = 1.0
LOST = 0.5  # the last of several look-ups failed, or two in a row hardly differed
TRIED = {2: 0.2, 3: 0.4}  # by number of look-ups without a hit that all differed


@component("reward")
class Referral(Component):
    """1 if a look-up named a gold answer, less 0.5 for each of two faults; some for trying.

    A look-up is a pair of the tag `call`, a list of findings; what it names is the list in the
    observation of its turn. Faults: several look-ups of which the last names none; two in a row
    whose findings differ in fewer than `differ`. Without a hit, look-ups that all differ earn 0.2
    (two) or 0.4 (three and more). Null without gold answers.
    """

    call: str = "match"  # the tag of a look-up
    differ: Annotated[int, Field(ge=1)] = 2  # findings in only one of two look-ups in a row

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """In [0, 1]."""
        golds = set(tellable(view.task.gold_answers))
        if not golds:
            return None
        asked: list[set[str]] = []
        hits: list[bool] = []
        for action, observation in zip(view.actions, view.observations, strict=True):
            for body in tags.bodies(action, self.call):
                asked.append(_items(body))
                hits.append(bool(_items(observation) & golds))
        differs = [len(one ^ other) >= self.differ for one, other in pairwise(asked)]
        if any(hits):
            faults = (len(hits) > 1 and not hits[-1]) + (not all(differs))
            return max(0.0, HIT - LOST * faults)
        return TRIED[min(len(asked), max(TRIED))] if len(asked) > 1 and all(differs) else 0.0


def _items(text: str) -> set[str]:
    """The normalised items of a list; numbers and tags around them are none."""
    lines = (NUMBER.sub("", item) for item in ITEM.split(TAG.sub("\n", text)))
    return {item for item in map(normalise, lines) if item}
