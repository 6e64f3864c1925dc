"""What an environment must do: open tasks as episodes, and play them without a model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, Protocol

from pydantic import Field

from agentrecipes.components import Fields
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.records import Action, Message, Task

Agent = Callable[[str | None], Action]
"""Plays without a model: takes the last observation (None at first), gives the next action."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an action led to: ``Outcome("Paris is …")``, ``Outcome(done=True, answer="Rome")``."""

    observation: str = ""
    done: bool = False
    answer: str | None = None
    reward: float = 0.0  # this turn's; most environments give none
    calls: tuple[str, ...] = ()  # what became of each call: result, error, late, ...
    context: tuple[Message, ...] | None = None  # a whole new context: it starts a new row


class OnInvalid(Fields):
    """What an action that cannot be read leads to."""

    reply: Literal["hint", "error", "stop"] = (
        "hint"  # the protocol's hint, the bare error, or the end
    )
    limit: Annotated[int, Field(ge=0)] = 2  # so many are answered; the next one ends the episode


class Episode(Protocol):
    """One task being played."""

    @property
    def task(self) -> Task:
        """The task as it is posed here (after renaming); score against its gold answers."""
        ...

    @property
    def messages(self) -> tuple[Message, ...]:
        """The opening messages."""
        ...

    async def step(self, action: Action) -> Outcome:
        """Carry out a valid action.

        Raises:
            TaskFailed: the environment or one of its tools failed.
        """
        ...

    async def close(self) -> None: ...


class Environment(Protocol):
    """What the policy acts in. The rollout enforces its limits and its rule for invalid actions."""

    max_turns: int
    on_invalid: OnInvalid

    @property
    def protocol(self) -> ActionProtocol: ...

    @property
    def symbols(self) -> frozenset[str]:
        """Interchangeable names (see Dataset.symbols)."""
        ...

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the rewards that measure the tasks (see Dataset.metrics)."""
        ...

    def tasks(self, split: str) -> Sequence[Task]: ...

    def open(self, task: Task, seed: int) -> Episode:
        """Same task and seed, same episode; the attempts of a group share the seed."""
        ...

    def oracle(self, task: Task) -> Agent:
        """Plays a posed task as well as it can be played."""
        ...

    def random(self, task: Task, seed: int) -> Agent:
        """Draws well-formed actions without looking at the task's gold answers."""
        ...
