"""Plays an environment with an agent that needs no model."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agentrecipes.environments.protocol import Agent, Environment, Episode
from agentrecipes.environments.stepping import Past, step
from agentrecipes.records import Action, Message, Stop, Task
from agentrecipes.rewards.protocol import View


@dataclass(frozen=True, slots=True)
class Played:
    """A played episode: what was said, turn by turn, and how it ended."""

    task: Task  # as posed
    messages: tuple[Message, ...]
    turns: tuple[tuple[str, str], ...]  # (action, observation)
    actions: tuple[Action, ...]  # as the protocol read them
    answer: str | None
    stop: Stop

    @property
    def view(self) -> View:
        """What a reward may look at."""
        return View(
            task=self.task,
            actions=tuple(action for action, _ in self.turns),
            observations=tuple(observation for _, observation in self.turns),
            calls=tuple(action.calls for action in self.actions),
            valid=tuple(action.valid for action in self.actions),
            answer=self.answer,
            stop=self.stop,
        )


def play(environment: Environment, task: Task, *, agent: str = "oracle", seed: int = 0) -> Played:
    """One episode by the environment's own ``oracle`` or ``random``, through written text."""
    episode = environment.open(task, seed)
    if agent == "oracle":
        return asyncio.run(drive(environment, episode, environment.oracle(episode.task)))
    return asyncio.run(drive(environment, episode, environment.random(episode.task, seed)))


async def drive(environment: Environment, episode: Episode, agent: Agent) -> Played:
    """An opened episode, to its end or to `max_turns`; an invalid action ends it."""
    protocol, observation = environment.protocol, None
    turns: list[tuple[str, str]] = []
    actions: list[Action] = []
    answer, stop = None, Stop.TURNS
    for _ in range(environment.max_turns):
        text = protocol.write(agent(observation))
        actions.append(protocol.parse(text))
        if not actions[-1].valid:
            turns.append((text, ""))
            stop = Stop.INVALID
            break
        past = Past(tuple(actions[:-1]))
        outcome = await step(environment, episode, actions[-1], past=past)
        observation = outcome.observation
        turns.append((text, observation))
        if outcome.done:
            answer, stop = outcome.answer, Stop.ANSWERED
            break
    await episode.close()
    return Played(episode.task, episode.messages, tuple(turns), tuple(actions), answer, stop)
