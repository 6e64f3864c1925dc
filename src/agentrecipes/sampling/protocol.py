"""What sampling must do: say how a group is collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentrecipes.records import Scored, Task


@dataclass(frozen=True, slots=True)
class Plan:
    """Attempts `first` to `first + attempts - 1` at a task, in refill round `refill`."""

    task: Task
    attempts: int
    first: int = 0
    refill: int = 0


class Sampling(Protocol):
    """How the attempts of a group come about. The budget is never exceeded."""

    def plan(self, tasks: Sequence[Task], group_size: int) -> list[Plan]:
        """What to collect first."""
        ...

    def refill(self, groups: Sequence[Sequence[Scored]], rounds: int) -> list[int]:
        """Numbers of the groups that leave, each for a new one; none to go on to the update.

        `groups` are those that the update would get after `rounds` rounds of collection.
        """
        ...
