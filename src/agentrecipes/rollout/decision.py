"""What an action leads to by the recipe's rules: one place for trained and played episodes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from agentrecipes.engines.protocol import Sample
from agentrecipes.environments.protocol import Environment, Episode, Outcome
from agentrecipes.environments.stepping import Past, step
from agentrecipes.errors import AgentRecipesError, TaskFailed
from agentrecipes.records import Action, Stop, Task

STEP_SECONDS = (
    300.0  # longest wait for an environment's step; tools have shorter limits of their own
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Decision:
    """The observation to show, or why the episode is over."""

    outcome: Outcome
    stop: Stop | None = None
    error: str = ""  # what failed, where stop is tool_error
    seconds: float = 0.0  # that the environment took


async def decide(
    environment: Environment, episode: Episode, *, action: Action, past: Past
) -> Decision:
    """Carry out `action`, the one after `past`."""
    last = len(past.actions) + 1 >= environment.max_turns
    if action.error is not None:
        rules = environment.on_invalid
        if rules.reply == "stop" or past.invalid >= rules.limit:
            return Decision(Outcome(), Stop.INVALID)
        hint = rules.reply == "hint"
        reply = environment.protocol.hint(action.error) if hint else action.error
        return Decision(Outcome(observation=reply), Stop.TURNS if last else None)
    started = time.perf_counter()
    try:
        stepping = step(environment, episode, action, past=past)
        outcome = await bounded(stepping, "the environment's step")
    except TaskFailed as error:
        seconds = time.perf_counter() - started
        return Decision(Outcome(), Stop.TOOL_ERROR, str(error), seconds)
    stop = Stop.ANSWERED if outcome.done else Stop.TURNS if last else None
    return Decision(outcome, stop, seconds=time.perf_counter() - started)


@asynccontextmanager
async def opened(environment: Environment, task: Task, seed: int) -> AsyncIterator[Episode]:
    """The episode, closed afterwards.

    Raises:
        TaskFailed: the environment could not be opened or closed.
    """
    episode = environment.open(task, seed)
    try:
        yield episode
    finally:
        await bounded(episode.close(), "closing the environment")


async def bounded(wait: Awaitable[T], name: str, seconds: float = STEP_SECONDS) -> T:
    """What `wait` gives.

    Raises:
        TaskFailed: it took longer than `seconds`, or the task's code failed in a way of its own.
    """
    try:
        async with asyncio.timeout(seconds):
            return await wait
    except TimeoutError as error:
        raise TaskFailed(f"{name} took longer than {seconds:g} s.") from error
    except AgentRecipesError:
        raise
    except Exception as error:  # the boundary to code of tasks and tools
        raise TaskFailed(f"{name} failed: {type(error).__name__}: {error}") from error


def cut_short(action: Action, sample: Sample) -> bool:
    """Whether the token budget ended the turn before it was a whole action."""
    return sample.finish == "length" and not action.valid
