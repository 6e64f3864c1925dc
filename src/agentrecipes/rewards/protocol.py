"""What a reward must do: score a view of a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from agentrecipes.records import Call, Stop, Task, Trajectory


@dataclass(frozen=True, slots=True)
class View:
    """What a reward may look at: who said what, and never prompt and response in one string."""

    task: Task
    actions: tuple[str, ...]  # the policy's text, by turn
    observations: tuple[str, ...]  # the environment's, by turn
    calls: tuple[tuple[Call, ...], ...]  # by turn
    valid: tuple[bool, ...]  # by turn: the action could be read
    answer: str | None
    stop: Stop

    @classmethod
    def of(cls, trajectory: Trajectory) -> View:
        turns = trajectory.turns
        return cls(
            task=trajectory.task,
            actions=tuple(turn.action_text for turn in turns),
            observations=tuple(turn.observation_text for turn in turns),
            calls=tuple(turn.calls for turn in turns),
            valid=tuple(turn.valid for turn in turns),
            answer=trajectory.answer,
            stop=trajectory.stop,
        )


class Reward(Protocol):
    """A number for a trajectory, or one per turn; null where it cannot be computed."""

    range: ClassVar[tuple[float, float]]
    reads: ClassVar[frozenset[str]]  # the task fields it needs, see Dataset.fields

    def score(self, view: View) -> float | list[float] | None:
        """A float in `range`; a list has one per turn; None where an input is missing."""
        ...
