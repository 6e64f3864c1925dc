"""An agent's episode, written down by the environment's rules."""

from __future__ import annotations

from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.environments.context import context_of
from agentrecipes.environments.protocol import Agent, Environment, Episode
from agentrecipes.environments.stepping import Past, step
from agentrecipes.records import Action


async def written(environment: Environment, episode: Episode, agent: Agent) -> Demonstration:
    """The episode to its end, closed afterwards; one that finds `max_turns` used up has no answer.

    Raises:
        TaskFailed: the environment or one of its tools failed.
        ValueError: an action has no written form.
    """
    protocol, context = environment.protocol, context_of(environment)
    turns: list[tuple[str, str]] = []
    actions: list[Action] = []
    shown: list[tuple[int, ...]] = []
    observation, answer = None, None
    for _ in range(environment.max_turns):
        text = protocol.write(agent(observation))
        action = protocol.parse(text)
        outcome = await step(environment, episode, action, past=Past(tuple(actions)))
        turns.append((text, outcome.observation))
        shown.append(context.shown(actions))
        actions.append(action)
        observation, answer = outcome.observation, outcome.answer
        if outcome.done:
            break
    await episode.close()
    return Demonstration(
        task=episode.task,
        messages=episode.messages,
        turns=tuple(turns),
        weights=(1.0,) * len(turns),
        correct=answer in episode.task.gold_answers,
        shown=tuple(shown) if context.edits else (),
    )
