"""Easy tasks first, harder ones as the stage goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.curricula.drawing import counted, least_seen
from agentrecipes.curricula.kinds import field_problems, kind_of, training_tasks, value_of
from agentrecipes.curricula.protocol import State
from agentrecipes.errors import Problem, RecipeError
from agentrecipes.records import Task

Positive = Annotated[int, Field(ge=1)]


@component("curriculum")
class EasyToHard(Component):
    """Opens one level of difficulty after the other, all equally long, over `over` iterations.

    MaskSearch 2025 (https://arxiv.org/abs/2505.20285) sorts by the number of masks:
    ``{by: question, occurrences: "[mask]", keeps_easier: false}``. With D levels among the tasks,
    iteration t has reached level ``min(t * D // over, D - 1)``; within what is open, tasks come as
    in `uniform`. State: ``{"iterations": done, "seen": {task id: times}}``.
    """

    by: Annotated[
        str, Field(min_length=1, description="The task field that says how hard a task is.")
    ] = "hops"
    occurrences: str | None = None  # a text: hard is what has it often in the field
    order: tuple[str, ...] | None = None  # the field's values, easy first; null: it is a number
    over: Positive = 100  # iterations until every level is open
    keeps_easier: bool = True  # easier levels stay in the draw

    def rules(self, stage: object) -> Iterable[Problem]:
        """Every training task must have a difficulty, by one rule alone."""
        if self.occurrences is not None and self.order is not None:
            found = "occurrences and order both say what is hard"
            yield Problem("contradiction", "order", found, "Leave one of them out.")
            return
        wrong = list(field_problems(stage, self.by))
        yield from wrong
        if wrong:
            return
        try:
            for task in training_tasks(stage):
                self._difficulty(task)
        except RecipeError as error:
            yield from error.problems

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` tasks of the levels that are open; some twice if those are too few."""
        hard = [self._difficulty(task) for task in tasks]
        levels = sorted(set(hard))
        if not levels:
            return []
        done: int = state.get("iterations", 0)
        reached = levels[min(done * len(levels) // self.over, len(levels) - 1)]
        open_now = [
            task
            for task, level in zip(tasks, hard, strict=True)
            if level == reached or (self.keeps_easier and level < reached)
        ]
        return least_seen(open_now, state.get("seen", {}), count=count, key=(seed, "easy_to_hard"))

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state one iteration later, in which the tasks of `results` were seen once more."""
        done: int = state.get("iterations", 0)
        return {**state, "iterations": done + 1, "seen": counted(state, results)}

    def _difficulty(self, task: Task) -> float:
        """How hard a task is: a number, a list's length, or a text's place or count.

        Raises:
            RecipeError: the field says none of these.
        """
        value: Any = value_of(task, self.by)
        if self.occurrences is not None and isinstance(value, str):
            return float(value.count(self.occurrences))
        if self.order is not None and kind_of(task, self.by) in self.order:
            return float(self.order.index(kind_of(task, self.by)))
        if self.order is None and self.occurrences is None:
            if isinstance(value, int | float):
                return float(value)
            if isinstance(value, Sequence | Mapping) and not isinstance(value, str):
                return float(len(value))
        found = f"task {task.id!r} has {self.by} {str(value)[:40]!r}, which says not how hard it is"
        hint = "Write `order: [EASY, …, HARD]` with all of its values, or name another field."
        raise RecipeError.about("wrong_value", found, hint, path="by")
