"""What imitation has learned, by type of question: accuracy on the oracle's own traces.

RL lifts only what imitation has; a type at zero stays there, and a mean over types hides it.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from agentrecipes.demonstrations.playing import written
from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.environments.protocol import Environment
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Task
from agentrecipes.rollout.chat import Chat
from agentrecipes.training import ranks
from agentrecipes.training.batch import cut, read_batch
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.telling import demonstration_rows


def oracle_demonstration(environment: Environment, task: Task, seed: int) -> Demonstration:
    """The oracle's episode, written down."""
    return asyncio.run(_play(environment, task, seed))


async def _play(environment: Environment, task: Task, seed: int) -> Demonstration:
    episode = environment.open(task, seed)
    return await written(environment, episode, environment.oracle(episode.task))


@dataclass(frozen=True, slots=True)
class Guard:
    """Measures what the policy has learned of an environment's oracle."""

    module: PolicyModule
    chat: Chat
    environment: Environment
    seed: int

    def accuracy_by_type(self, per_type: int) -> dict[str, float]:
        """Type of question → share of the oracle's names that the policy predicts.

        By teacher forcing, on `per_type` tasks a type. Names are the environment's interchangeable
        symbols; where it has none (or the tokenizer splits them), every action token counts.
        """
        chosen: dict[str, list[Task]] = defaultdict(list)
        for task in self.environment.tasks("train"):
            if len(chosen[task.type]) < per_type:
                chosen[task.type].append(task)
        names = _name_ids(self.chat, self.environment.symbols)
        return ranks.from_first(
            {kind: self._accuracy(tasks, names) for kind, tasks in sorted(chosen.items())}
        )

    def _accuracy(self, tasks: Sequence[Task], names: np.ndarray) -> float:
        seeds = [derive(self.seed, "guard", task.id) for task in tasks]
        told = [
            oracle_demonstration(self.environment, task, seed)
            for task, seed in zip(tasks, seeds, strict=True)
        ]
        role = self.environment.protocol.observation_role
        rows = [
            row
            for n, each in enumerate(told)
            for row in demonstration_rows(each, self.chat, number=n, role=role)
        ]
        micro = cut(rows, read_batch(rows), range(len(rows))).to(self.module.device)
        hits = self.module.hits(micro.strip).cpu().numpy()
        right = wanted = 0
        for number, row in enumerate(rows):
            counted = row.action_mask & (np.isin(row.ids, names) if names.size else True)
            right += int(hits[number, : len(row)][counted].sum())
            wanted += int(counted.sum())
        return right / wanted if wanted else 1.0


def _name_ids(chat: Chat, symbols: Iterable[str]) -> np.ndarray:
    forms = [chat.encode(lead + name) for name in sorted(symbols) for lead in ("", " ")]
    return np.array([ids[0] for ids in forms if len(ids) == 1], dtype=np.int64)
