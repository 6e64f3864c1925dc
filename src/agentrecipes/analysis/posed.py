"""Stored tasks as they were posed: their questions again, from the recipe's environment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from agentrecipes.errors import TaskFailed
from agentrecipes.recipe.schema import Stage
from agentrecipes.records import Task
from agentrecipes.rollout.decision import opened
from agentrecipes.rollout.setting import opening_seed


@dataclass(frozen=True)
class PosedTasks:
    """Opens the tasks of a stage's training as the run opened them.

    The tables hold a task's id and gold answers; what else a reward reads comes from the dataset,
    under the names of that episode. ``strangers`` are tasks that the dataset poses differently by
    now: they have their stored gold answers and an empty question.
    """

    stage: Stage
    seed: int
    strangers: set[str] = field(default_factory=set)
    _known: dict[tuple[int, str], Task] = field(default_factory=dict)

    def task(self, row: Mapping[str, Any]) -> Task:
        """The task of a row of ``trajectories``."""
        key = (row["iteration"], row["group_id"])
        gold = tuple(row["gold"] or ())
        if key not in self._known:
            self._known[key] = self._posed(row)
        task = self._known[key]
        if task.gold_answers != gold:
            self.strangers.add(row["task"])
            return Task(row["task"], row["split"], "", gold)
        return task

    def _posed(self, row: Mapping[str, Any]) -> Task:
        unknown = Task(row["task"], row["split"], "", tuple(row["gold"] or ()))
        task = self._tasks.get(row["task"])
        number = str(row["group_id"]).rpartition("-")[2]
        if task is None or not number.isdigit():
            self.strangers.add(row["task"])
            return unknown
        key = (self.seed, self.stage.name, row["iteration"], "rollout")
        try:
            return asyncio.run(_open(self.stage, task, opening_seed(key, task.id, int(number))))
        except TaskFailed:  # it could not be opened in the run either, and was scored as it is
            return replace(task, gold_answers=unknown.gold_answers)

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        tasks: Sequence[Task] = self.stage.environment.tasks("train")
        return {task.id: task for task in tasks}


async def _open(stage: Stage, task: Task, seed: int) -> Task:
    async with opened(stage.environment, task, seed) as episode:
        return episode.task
