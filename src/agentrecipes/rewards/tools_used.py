"""How many of the tools that a task wants were used. ARPO (2025).

https://arxiv.org/abs/2507.19849, its bonus for using search and code together.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import tags
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class ToolsUsed(Component):
    """The share of `tools` that were called at least once, whatever came of it."""

    tools: Annotated[tuple[str, ...], Field(min_length=1)]
    by: Literal["calls", "tags"] = "calls"  # tags: a tool's call is a closed tag of its name

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float:
        """In [0, 1]."""
        wanted = dict.fromkeys(self.tools)
        if self.by == "tags":
            text = tags.written(view)
            used = {tool for tool in wanted if tags.bodies(text, tool)}
        else:
            used = {call.tool for turn in view.calls for call in turn}
        return sum(tool in used for tool in wanted) / len(wanted)
