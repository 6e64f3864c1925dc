"""Episodes without a model: an oracle, a random agent or texts act by the policy's rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agentrecipes.environments.protocol import Environment, Episode, Outcome
from agentrecipes.environments.stepping import Past
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Action, Call, Stop, Task
from agentrecipes.rewards.protocol import View
from agentrecipes.rollout.collect import run
from agentrecipes.rollout.decision import Decision, decide, opened

Player = Callable[[str | None], Action | str | None]
"""An Agent that may also give its text as it is, or None when it has nothing more to say."""


@dataclass(frozen=True, slots=True)
class Played:
    """An episode that was played without tokens: ``Played(view, Stop.ANSWERED, "Rome", 3)``."""

    view: View
    stop: Stop
    answer: str | None
    turns: int
    rewards: tuple[float, ...] = ()  # the environment's own, by turn
    error: str = ""
    outcomes: tuple[tuple[str, ...], ...] = ()  # what became of the calls, by turn


def play(
    environment: Environment, task: Task, *, agent: Callable[[Task], Player], seed: int = 0
) -> Played:
    """Play `task` with the agent that `agent` makes for it as it is posed (``environment.oracle``).

    Every action is written and read back by the protocol, as a policy's would be.
    """
    return run(_play(environment, task, agent=agent, seed=seed))


def texts(actions: Sequence[str]) -> Callable[[Task], Player]:
    """An agent that says `actions`, one a turn, and is silent then; for `play`."""

    def make(_: Task) -> Player:
        left = iter(actions)
        return lambda _: next(left, None)

    return make


async def _play(
    environment: Environment, task: Task, *, agent: Callable[[Task], Player], seed: int
) -> Played:
    script = Script()
    try:
        async with opened(environment, task, seed) as episode:
            task = episode.task
            await _act(environment, episode, player=agent(task), script=script)
    except TaskFailed as error:  # it could not be opened or closed
        script.stop, script.error = Stop.TOOL_ERROR, str(error)
    return script.played(task)


async def _act(
    environment: Environment, episode: Episode, *, player: Player, script: Script
) -> None:
    """Let the player act until the episode or its words are over."""
    while script.stop is None:
        said = player(script.shown)
        if said is None:
            script.stop = Stop.CANCELLED
            return
        text = said if isinstance(said, str) else environment.protocol.write(said)
        action = environment.protocol.parse(text)
        past = Past(tuple(script.actions))
        decision = await decide(environment, episode, action=action, past=past)
        script.add(text, action, decision)


class Script:
    """What was said so far."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.actions: list[Action] = []
        self.outcomes: list[Outcome] = []
        self.stop: Stop | None = None
        self.error = ""

    @property
    def shown(self) -> str | None:
        """The last observation; None before the first action."""
        return self.outcomes[-1].observation if self.outcomes else None

    def add(self, text: str, action: Action, decision: Decision) -> None:
        self.said.append(text)
        self.actions.append(action)
        self.outcomes.append(decision.outcome)
        self.stop, self.error = decision.stop, decision.error

    def played(self, task: Task) -> Played:
        stop = self.stop or Stop.CANCELLED
        answer = self.outcomes[-1].answer if self.outcomes else None
        calls: tuple[tuple[Call, ...], ...] = tuple(action.calls for action in self.actions)
        rewards = tuple(outcome.reward for outcome in self.outcomes)
        view = View(
            task=task,
            actions=tuple(self.said),
            observations=tuple(outcome.observation for outcome in self.outcomes),
            calls=calls,
            valid=tuple(action.valid for action in self.actions),
            answer=answer,
            stop=stop,
            rewards=rewards,
        )
        outcomes = tuple(outcome.calls for outcome in self.outcomes)
        return Played(view, stop, answer, len(self.said), rewards, self.error, outcomes)
