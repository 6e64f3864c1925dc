"""Groups whose attempts all got the same are collected again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.sampling.protocol import Plan

if TYPE_CHECKING:
    from agentrecipes.records import Scored, Task


@component("sampling")
class Dynamic(Component):
    """Refills groups without signal, each by a new task, as long as the limit allows.

    Yu et al. 2025, section 3.2, https://arxiv.org/abs/2503.14476. What still has none after the
    last round goes on to the update, where its advantage is 0.
    """

    limit: Annotated[int, Field(ge=1)] = 10  # rounds of collection, the first one included

    def plan(self, tasks: Sequence[Task], group_size: int) -> list[Plan]:
        """All attempts at every task."""
        return [Plan(task, group_size) for task in tasks]

    def refill(self, groups: Sequence[Sequence[Scored]], rounds: int) -> list[int]:
        """The groups that hold no two different totals; none after the last round."""
        if rounds >= self.limit:
            return []
        return [number for number, group in enumerate(groups) if not _has_signal(group)]


def _has_signal(group: Sequence[Scored]) -> bool:
    return len({scored.total for scored in group if scored.total is not None}) > 1
