"""Every attempt from the prompt on, and whatever comes back is the group."""

from __future__ import annotations

from collections.abc import Sequence

from agentrecipes.components import Component, component
from agentrecipes.records import Scored, Task
from agentrecipes.sampling.protocol import Plan


@component("sampling")
class Independent(Component):
    """`group_size` attempts at each task; nothing is drawn again."""

    def plan(self, tasks: Sequence[Task], group_size: int) -> list[Plan]:
        """One plan per task, in the order of the tasks."""
        return [Plan(task, group_size) for task in tasks]

    def refill(self, groups: Sequence[Sequence[Scored]], rounds: int) -> list[int]:
        """Never any."""
        return []
