"""Where a stage stands, and what it samples with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentrecipes.recipe.schema import Stage
from agentrecipes.rollout.setting import Job, Setting, opening_seed
from agentrecipes.sampling.protocol import Plan

if TYPE_CHECKING:
    from agentrecipes.engines.protocol import Engine
    from agentrecipes.rollout.chat import Chat


@dataclass(frozen=True, slots=True)
class Position:
    """Where a stage stands: plain values, all that a checkpoint needs beside the weights."""

    iteration: int = 0  # iterations, or steps of a stage that reads data, that are done
    policy_version: int = 0  # counts on through the run
    curriculum: Mapping[str, Any] = field(default_factory=dict)
    algorithm: Mapping[str, Any] = field(default_factory=dict)
    extensions: int = 0  # of a stage that reads data, by the tripwire dead_type


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
            seen[task.id] += plan.attempts
        return jobs
