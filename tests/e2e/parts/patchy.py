"""A reward that cannot be computed on every trajectory."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import View


@component("reward")
class Patchy(Component):
    """Null for a text with an odd number of letters, else the share of the letter e."""

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()

    def score(self, view: View) -> float | None:
        """The share, 0 for no text."""
        text = "".join(view.actions)
        if len(text) % 2:
            return None
        return text.count("e") / len(text) if text else 0.0
