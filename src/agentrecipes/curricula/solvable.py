"""Tasks that can be solved, and a share of those that are easy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.curricula.drawing import least_seen
from agentrecipes.curricula.protocol import State
from agentrecipes.errors import RunStopped
from agentrecipes.numerics.streams import uniforms
from agentrecipes.records import Task

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


@component("curriculum")
class Solvable(Component):
    """Drops what was never solved in `tries` results, and all but a share of what always was.

    RAG-R1 2025 (https://arxiv.org/abs/2507.02962) filters before RL: of the questions that the
    teacher got wrong it keeps those solved at least once in up to 10 samples, and adds a random
    25 % of those that the teacher got right. Here the policy's own results decide as they come, and
    *easy* is a task that it has never failed. A result is the mean return of one group, so that
    `tries` results are ``tries * rollout.group_size`` samples. State: ``{"tasks": {task id: [times
    seen, lowest mean, highest mean]}}``; a task without results is in the draw.
    """

    tries: Positive = 10  # results without a success after which a task is dropped
    easy: Share = 0.25  # share of the tasks never failed that stays
    success_above: float = 0.0  # a mean return above this holds a success
    full_from: float = 1.0  # a mean return from this on holds no failure

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` of the tasks that are kept, as in `uniform`; some twice if too few.

        Raises:
            RunStopped: no task is kept.
        """
        known: Mapping[str, Sequence[Any]] = state.get("tasks", {})
        kept = [task for task in tasks if self._keeps(task.id, known.get(task.id))]
        if tasks and not kept:
            raise RunStopped(
                f"curriculum solvable: none of {len(tasks)} tasks is left; each was never solved "
                f"in {self.tries} results, or was easy and outside of the share of easy ones"
            )
        seen = {task: own[0] for task, own in known.items()}
        return least_seen(kept, seen, count=count, key=(seed, "solvable"))

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state in which the tasks of `results` were tried once more."""
        tasks = dict(state.get("tasks", {}))
        for task, mean in results.items():
            times, lowest, highest = tasks.get(task, (0, mean, mean))
            tasks[task] = [times + 1, min(lowest, mean), max(highest, mean)]
        return {**state, "tasks": tasks}

    def _keeps(self, task: str, known: Sequence[Any] | None) -> bool:
        if known is None:
            return True
        times, lowest, highest = known
        if highest <= self.success_above:
            return bool(times < self.tries)
        if lowest >= self.full_from:  # which of the easy ones stay does not change
            return bool(uniforms(("solvable", "easy", task), 1)[0] < self.easy)
        return True
