"""What sampling must do: say how a group is collected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from agentrecipes.records import Scored, Task


@dataclass(frozen=True, slots=True)
class Plan:
    """Attempts `first` to `first + attempts - 1` at a task, in refill round `refill`."""

    task: Task
    attempts: int
    first: int = 0
    refill: int = 0
    room: int = 0  # attempts that the group may come to have; 0: no more than planned


@dataclass(frozen=True, slots=True)
class Branch:
    """One more attempt, on from where an attempt's first `turns` turns ended: ``Branch(0, 1)``."""

    attempt: int | None = None  # its place in the group; None: from the prompt on
    turns: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """A group so far: ``Group(attempts, seen=0, size=8, words=50_000, key=(7, "rl", 0))``."""

    attempts: Sequence[Scored]
    seen: int  # of them, that were there when it was asked about last; 0 the first time
    size: int  # most attempts that it may have
    words: int  # in the policy's vocabulary
    key: tuple[int | str, ...]  # its own, to draw random numbers by

    @property
    def room(self) -> int:
        return self.size - len(self.attempts)


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


@runtime_checkable
class Branches(Protocol):
    """What a sampling has besides if groups grow: further attempts begin where others stood."""

    def branch(self, group: Group) -> list[Branch]:
        """The attempts to add now, no more than there is room for; none: the group is whole."""
        ...
