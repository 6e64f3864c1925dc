"""How well-formed the turns are under the search_tags protocol."""

from __future__ import annotations

import re
from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View

TAG = re.compile(r"(</?(?:think|search|information|answer)>)")


@component("reward")
class FormatTags(Component):
    """The share of well-formed turns, an answer at the end counting as one more.

    A turn is well-formed if it could be read and is nothing but a thought and one closed search or
    answer. So k turns give (well-formed turns + 1 if it answered) / (k + 1): 1 only if every turn
    is well-formed and the last one answers, 0 for a trajectory without turns.
    """

    thought: bool = True  # each turn must begin with a closed thought

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """In [0, 1]; looks at the policy's own text alone."""
        if not view.actions:
            return 0.0
        formed = [
            valid and self._is_formed(action)
            for action, valid in zip(view.actions, view.valid, strict=True)
        ]
        return (sum(formed) + (view.answer is not None)) / (len(formed) + 1)

    def _is_formed(self, action: str) -> bool:
        pieces = TAG.split(action)  # text, tag, text, ..., text
        tags, texts = pieces[1::2], pieces[::2]
        if tags[:2] == ["<think>", "</think>"] and not texts[0].strip():
            tags, texts = tags[2:], texts[2:]
        elif self.thought:
            return False
        if tags not in (["<search>", "</search>"], ["<answer>", "</answer>"]):
            return False
        before, body, after = texts
        return bool(body.strip()) and not before.strip() and not after.strip()
