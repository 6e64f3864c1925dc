"""What all episodes of one collection share, and what each one is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agentrecipes.engines.protocol import Engine
from agentrecipes.environments.protocol import Environment
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Task, Turn

if TYPE_CHECKING:
    from agentrecipes.rollout.chat import Chat

Key = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Job:
    """One attempt to collect: ``Job(task, "c2-17", attempt=3, open_seed=5, key=(7, "rl", 0))``.

    Attempts of one group share ``open_seed``: they are asked the same question.
    """

    task: Task
    group: str
    attempt: int = 0  # from 0, within the group
    refill: int = 0
    open_seed: int = 0
    key: Key = ()  # (seed, stage, iteration, purpose): what its random numbers are derived from
    taken: tuple[Turn, ...] = ()  # another attempt's first turns, from which this one goes on


def opening_seed(key: Key, task: str, number: int) -> int:
    """What opens a task's episode; `number` counts the groups of that task in one collection."""
    return derive(*key, "open", task, number)


@dataclass(frozen=True, slots=True)
class Setting:
    """Environment, engine and limits of a collection; the last fields are the recipe's rollout."""

    environment: Environment
    engine: Engine
    chat: Chat
    policy_version: int = 0
    on_progress: Callable[[int, int], None] | None = None  # (episodes done, of how many)
    order: Literal["fixed", "ready"] = "fixed"
    temperature: float = 1.0
    top_p: float = 1.0
    greedy: bool = False  # always the likeliest token; temperature and top_p mean nothing then
    tokens_per_turn: int = 256
    tokens: int = 2048
    concurrency: int = 256
    engine_seconds: float = 3600.0  # longest wait for one batch of turns
