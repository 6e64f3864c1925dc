"""What a reward must do: score a view of a trajectory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from agentrecipes.records import Call, Stop, Task, Trajectory

Gives = Literal["trajectory", "turn"]


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
    # What the environment itself gave, by turn; None where text was written and nothing was played.
    rewards: tuple[float, ...] | None = field(default=None, compare=False)
    # The policy's tokens, by turn; None where text was written. What was said is the same.
    tokens: tuple[int, ...] | None = field(default=None, compare=False)
    # Tokens that the policy could have written; None where that is not known.
    most_tokens: int | None = field(default=None, compare=False)

    @classmethod
    def of(cls, trajectory: Trajectory, most_tokens: int | None = None) -> View:
        """The view of what was played."""
        turns = trajectory.turns
        return cls(
            task=trajectory.task,
            actions=tuple(turn.action_text for turn in turns),
            observations=tuple(turn.observation_text for turn in turns),
            calls=tuple(turn.calls for turn in turns),
            valid=tuple(turn.valid for turn in turns),
            answer=trajectory.answer,
            stop=trajectory.stop,
            rewards=tuple(turn.reward for turn in turns),
            tokens=tuple(len(turn.action) for turn in turns),
            most_tokens=most_tokens,
        )


def most_tokens(stage: Any) -> int:
    """What the policy can write in a trajectory of this stage.

    That is `rollout.tokens_per_turn` in each of the environment's turns, `rollout.tokens` at most.
    """
    rollout, turns = stage.rollout, getattr(stage.environment, "max_turns", None)
    per_turns = rollout.tokens if turns is None else turns * rollout.tokens_per_turn
    return int(min(rollout.tokens, per_turns))


class Reward(Protocol):
    """A number for a trajectory, or one per turn; null where it cannot be computed.

    A part may say by ``gives`` which of the two it is: "trajectory" or "turn". Without it its lists
    count turn by turn whatever a recipe's ``scope`` says. The properties may be class variables.
    """

    @property
    def range(self) -> tuple[float, float]:
        """Least and greatest value, of a turn where there is one per turn."""
        ...

    @property
    def reads(self) -> frozenset[str]:
        """The task fields it needs, see Dataset.fields."""
        ...

    def score(self, view: View) -> float | list[float] | None:
        """A float in `range`; a list has one per turn; None where an input is missing."""
        ...
