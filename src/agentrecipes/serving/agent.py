"""A run's policy, ready to answer: its environment, its protocol, and an engine that batches."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from agentrecipes.components import build
from agentrecipes.engines.protocol import Engine, Request, Sample
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.recipe.load import Recipe
from agentrecipes.records import Action, Message, Task, Trajectory, Turn
from agentrecipes.rollout.chat import Labelled
from agentrecipes.rollout.collect import Desk
from agentrecipes.rollout.episode import play_policy
from agentrecipes.rollout.setting import Job, Setting
from agentrecipes.training.export import weights
from agentrecipes.training.policy import Policy
from agentrecipes.training.position import Position, Sampler

SPLIT = "test"  # whose corpus is searched


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to sample; None is the recipe's own value."""

    temperature: float | None = None  # 0: always the likeliest token
    top_p: float | None = None
    max_tokens: int | None = None  # of one turn
    seed: int | None = None  # the same seed and conversation, the same answer
    stop: tuple[str, ...] = ()  # beside the protocol's


@dataclass(frozen=True, slots=True)
class Drawn:
    """One turn of the policy, read by the protocol."""

    text: str
    action: Action
    prompt_tokens: int
    tokens: int
    cut: bool  # the limit ended it before it was a whole action


@dataclass(frozen=True)
class Agent:
    """Answers questions with its own tools, or gives single turns to somebody who has tools.

    Everybody who asks at the same time is sampled together. Use it within one event loop.
    """

    name: str
    setting: Setting
    desk: Desk
    _count: itertools.count[int] = field(default_factory=itertools.count)

    @classmethod
    def load(cls, run: Path, recipe: Recipe) -> Agent:
        """The model of a finished run, in the environment of its last stage.

        Raises:
            RecipeError: the run has no model, or its model cannot be loaded.
        """
        last = recipe.stages[-1]
        done = last.iterations or last.steps or 0
        stage = recipe.stage(len(recipe.stages) - 1, done)
        torch.set_num_threads(stage.trainer.threads)
        policy = Policy.build(build("model", {"name": "run", "path": str(run)}), recipe.seed)
        policy.chat.verify(stage.environment.protocol.observation_role)
        engine = stage.rollout.engine.start(policy.module.model, policy.tokenizer)
        engine.load(weights(policy.module), 0)
        sampler = Sampler(engine, policy.chat, recipe.seed, stage.name)
        return cls.of(run.name, sampler.setting(stage, Position(iteration=done)))

    @classmethod
    def of(cls, name: str, setting: Setting) -> Agent:
        """An agent that plays as `setting` says."""
        setting = replace(setting, engine=InThread(setting.engine))
        return cls(name, setting, Desk(setting, wait_for_all=False))

    @property
    def protocol(self) -> ActionProtocol:
        return self.setting.environment.protocol

    async def ask(
        self,
        question: str,
        sampling: Sampling = Sampling(),
        *,
        on_turn: Callable[[Turn], None] | None = None,
    ) -> Trajectory:
        """Play one episode with the agent's own tools; `on_turn` is told each turn.

        Raises:
            EngineError: the sampler failed.
        """
        number = next(self._count)
        setting = self._with(sampling)
        key = ("serve", number if sampling.seed is None else sampling.seed)
        job = Job(Task(f"question-{number}", SPLIT, question), "serve", key=key)

        async def sample(request: Request) -> Sample:
            request = replace(request, stop=(*request.stop, *sampling.stop))
            return await self.desk.sample(number, request)

        return await play_policy(job, setting, sample, on_turn=on_turn)

    async def turn(self, prompt: Labelled, sampling: Sampling = Sampling()) -> Drawn:
        """One turn after `prompt`; whoever asked carries out its calls.

        Raises:
            EngineError: the sampler failed.
        """
        number = next(self._count)
        setting = self._with(sampling)
        room = min(setting.tokens_per_turn, setting.tokens - len(prompt[0]))
        request = Request(
            ids=prompt[0],
            key=("serve", number if sampling.seed is None else sampling.seed),
            max_tokens=max(room, 1),
            stop=(*self.protocol.stop, *sampling.stop),
            temperature=0.0 if setting.greedy else setting.temperature,
            top_p=1.0 if setting.greedy else setting.top_p,
        )
        drawn = await self.desk.sample(number, request)
        ended = drawn.finish == "eos"
        text = setting.chat.decode(drawn.ids[:-1] if ended else drawn.ids)
        action = self.protocol.parse(text)
        cut = drawn.finish == "length" and not action.valid
        return Drawn(text, action, len(prompt[0]), len(drawn.ids), cut)

    def opening(self, question: str) -> Sequence[Message]:
        """How the environment poses a question."""
        return self.setting.environment.open(Task("question", SPLIT, question), 0).messages

    def close(self) -> None:
        """Let the engine go."""
        self.setting.engine.close()

    def _with(self, sampling: Sampling) -> Setting:
        own = self.setting
        temperature = own.temperature if sampling.temperature is None else sampling.temperature
        most = own.tokens_per_turn if sampling.max_tokens is None else sampling.max_tokens
        return replace(
            own,
            greedy=temperature == 0.0,
            temperature=temperature or 1.0,
            top_p=own.top_p if sampling.top_p is None else sampling.top_p,
            tokens_per_turn=most,
        )


class InThread:
    """An engine that works beside the event loop, so that a server goes on listening meanwhile."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.load, self.rest, self.close = engine.load, engine.rest, engine.close

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """What the engine gives."""
        return await asyncio.to_thread(lambda: asyncio.run(self._engine.generate(requests)))
