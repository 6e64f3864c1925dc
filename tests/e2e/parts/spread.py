"""A reward that an untrained policy spreads: how much of its text is the letter a."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import View


@component("reward")
class Spread(Component):
    """Share of the letter a in the policy's text."""

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()

    def score(self, view: View) -> float:
        """The share, 0 for no text."""
        text = "".join(view.actions)
        return text.count("a") / len(text) if text else 0.0
