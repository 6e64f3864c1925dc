"""A reward with a bug."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import View


@component("reward")
class Fragile(Component):
    """Raises on every trajectory."""

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()

    def score(self, view: View) -> float:
        """Nothing: it breaks."""
        raise ValueError(f"the part broke on {view.task.id}")
