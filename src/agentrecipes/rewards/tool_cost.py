"""What the use of tools costs."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class ToolCost(Component):
    """From 0 down to -1 in a line: the calls beyond `free`, as a share of `most`.

    With ``most: 10`` and ``free: 2`` five calls cost -0.3, and twelve or more cost -1.
    """

    most: Annotated[int, Field(ge=1)] = 10  # calls beyond `free` that cost a whole -1
    free: Annotated[int, Field(ge=0)] = 0  # calls that cost nothing
    tools: tuple[str, ...] | None = None  # whose calls count; null: all tools'

    range: ClassVar[tuple[float, float]] = (-1.0, 0.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """In [-1, 0]; a turn that asks for three things at once made three calls."""
        calls = [call for turn in view.calls for call in turn]
        paid = sum(self.tools is None or call.tool in self.tools for call in calls) - self.free
        return -min(max(paid, 0) / self.most, 1.0) or 0.0  # no negative zero
