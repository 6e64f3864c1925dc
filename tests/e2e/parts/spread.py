"""A reward that an untrained policy spreads: how much of its text is the letter a."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import View


@component("reward")
class Spread(Component):
    """Share of the letter a in the policy's text."""

    half: bool = False  # 0 for every question with an odd number of characters
    patchy: bool = False  # null for every text with an odd number of characters

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()

    def score(self, view: View) -> float | None:
        """The share, 0 for no text."""
        text = "".join(view.actions)
        if self.patchy and len(text) % 2:
            return None
        if self.half and len(view.task.question) % 2:
            return 0.0
        return text.count("a") / len(text) if text else 0.0
