"""What the use of tools earns. SPEAR (2025, https://arxiv.org/abs/2509.22601)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class ToolBonus(Component):
    """``min(1, each · turns with calls)``, whether or not they led anywhere.

    SPEAR lets it fade: ``weight: {schedule: cosine, from: 1.0, to: 0.0, over: T}``. What pays for
    mere use is used for nothing, so a weight that stays teaches a policy to call and not to answer.
    """

    each: Annotated[float, Field(gt=0.0, le=1.0)] = 0.1
    count: Literal["turns", "calls"] = "turns"  # turns with calls, or single calls
    tools: tuple[str, ...] | None = None  # whose calls count; null: all tools'

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """In [0, 1]."""
        by_turn = [
            sum(self.tools is None or call.tool in self.tools for call in turn)
            for turn in view.calls
        ]
        used = sum(by_turn) if self.count == "calls" else sum(calls > 0 for calls in by_turn)
        return min(1.0, self.each * used)
