"""Whether the environment's protocol could read the turns."""

from __future__ import annotations

from typing import ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class FormatValid(Component):
    """The share of turns whose action could be read, whatever the protocol; 0 without turns.

    It says as much as the protocol asks for: one that does not insist on a thought calls an action
    without a thought valid. `format_tags` is stricter, for search_tags alone.
    """

    turns: Literal["share", "all"] = "share"  # all: 1 if every turn could be read, else 0

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """In [0, 1]."""
        if not view.valid:
            return 0.0
        if self.turns == "all":
            return float(all(view.valid))
        return sum(view.valid) / len(view.valid)
