"""Where a stage stands, and what it samples with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentrecipes.errors import EngineError
from agentrecipes.recipe.schema import Stage
from agentrecipes.rollout.setting import Job, Setting, opening_seed
from agentrecipes.sampling.protocol import Plan
from agentrecipes.training import ranks

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.protocol import Engine, EnginePart, Request, Sample
    from agentrecipes.rollout.chat import Chat


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stage stands: plain values, all that a checkpoint needs beside the weights."""

    iteration: int = 0  # iterations, or steps of a stage that reads data, that are done
    policy_version: int = 0  # counts on through the run
    curriculum: Mapping[str, Any] = field(default_factory=dict)
    algorithm: Mapping[str, Any] = field(default_factory=dict)
    extensions: int = 0  # of a stage that reads data, by the tripwire dead_type


class Elsewhere:
    """The engine of a rank that has none: rank 0 samples for all."""

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """Nothing, since nothing is asked.

        Raises:
            EngineError: something is.
        """
        if requests:
            raise EngineError("only rank 0 of this run samples")
        return []

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None: ...

    def rest(self) -> None: ...

    def close(self) -> None: ...


def on_every_rank(part: EnginePart) -> bool:
    """Whether each rank has an engine of its own, as `native` does, on the weights it trains."""
    return bool(getattr(part, "everywhere", False))


def started(part: EnginePart, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Engine:
    """This rank's engine; an engine that holds devices or servers is there once, on rank 0."""
    if ranks.leads() or on_every_rank(part):
        return part.start(model, tokenizer)
    return Elsewhere()


@dataclass(frozen=True, slots=True)
class Sampler:
    """What a collection needs beside its tasks."""

    engine: Engine
    chat: Chat
    seed: int
    stage: str

    def setting(self, stage: Stage, position: Position, *, greedy: bool = False) -> Setting:
        """How episodes are run in this iteration."""
        rollout = stage.rollout
        return Setting(
            environment=stage.environment,
            engine=self.engine,
            chat=self.chat,
            tokens=rollout.tokens,
            tokens_per_turn=rollout.tokens_per_turn,
            temperature=rollout.temperature,
            greedy=greedy,
            top_p=rollout.top_p,
            order=rollout.order or rollout.engine.order,
            concurrency=rollout.concurrency,
            policy_version=position.policy_version,
        )

    def jobs(self, plans: Sequence[Plan], iteration: int, purpose: str) -> list[Job]:
        """One job per attempt; a task that is planned twice gets new attempt numbers."""
        seen: Counter[str] = Counter()
        jobs = []
        for plan in plans:
            task = plan.task
            group = f"{iteration}-{plan.refill}-{task.id}-{seen[task.id]}"
            first = plan.first + seen[task.id]
            key = (self.seed, self.stage, iteration, purpose)
            opening = opening_seed(key, task.id, seen[task.id])
            jobs += [
                Job(task, group, first + n, plan.refill, opening, key) for n in range(plan.attempts)
            ]
            seen[task.id] += max(plan.attempts, plan.room)
        return jobs
