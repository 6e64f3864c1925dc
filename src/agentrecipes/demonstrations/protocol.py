"""What demonstrations must do: give transcripts to imitate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from agentrecipes.environments.protocol import Environment
from agentrecipes.records import Message, Task


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A written episode: opening messages, then action and observation, turn by turn.

    ``weights`` has one number per turn, the loss weight of its action (0.0 for a marked mistake).
    """

    task: Task
    messages: tuple[Message, ...]
    turns: tuple[tuple[str, str], ...]  # (action, observation); the last observation may be ""
    weights: tuple[float, ...]
    correct: bool | None = None  # None where nobody knows
    # By turn, the earlier turns that its prompt shows, where a context was edited; else empty: all.
    shown: tuple[tuple[int, ...], ...] = ()


class Demonstrations(Protocol):
    """Where the transcripts that SFT reads come from."""

    def draw(self, environment: Environment, seed: int) -> Sequence[Demonstration]:
        """All of them, in a fixed order."""
        ...

    def restate(
        self, demonstration: Demonstration, environment: Environment, seed: int
    ) -> Demonstration:
        """The same demonstration under other interchangeable names; itself where there are none."""
        ...
