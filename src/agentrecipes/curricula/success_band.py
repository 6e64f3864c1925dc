"""Tasks that are neither solved nor hopeless."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from agentrecipes.components import Component, component
from agentrecipes.curricula.drawing import least_seen, repeated
from agentrecipes.curricula.kinds import field_problems, kind_of
from agentrecipes.curricula.protocol import State
from agentrecipes.errors import Problem, RunStopped
from agentrecipes.numerics.streams import uniforms
from agentrecipes.records import Task

Positive = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Memory = Annotated[float, Field(ge=0.0, lt=1.0)]


@component("curriculum")
class SuccessBand(Component):
    """Draws tasks whose running success rate lies in [low, high]; what is unknown comes first.

    Where all attempts at a task get the same, a group teaches nothing (DAPO 2025,
    https://arxiv.org/abs/2503.14476, sends such groups away after sampling; this does not ask for
    them). The rate is an exponential average of the task's mean returns, the first one its
    beginning: ``rate = memory * rate + (1 - memory) * mean``. By a field, a kind's rate is the mean
    of its tasks' rates, each weighing ``memory`` to the power of its age in iterations. State:
    ``{"iterations": done, "tasks": {task id: [rate, iteration of its last result, times seen]}}``.
    """

    low: float = 0.1  # of the mean return; with a reward of 0 or 1, of the success rate
    high: float = 0.9
    memory: Memory = 0.8  # weight of the past in the running average
    by: str | None = None  # a task field: the tasks of a kind share one rate; null: each its own
    unknown: Share = 1.0  # most of an iteration that goes to unknown tasks, if others are in band
    retry: Positive | None = 20  # iterations until what lay outside is unknown again; null: never
    outside: Literal["nearest", "stop"] = "nearest"  # what comes when nothing else is left

    @model_validator(mode="after")
    def _is_a_band(self) -> SuccessBand:
        if self.low > self.high:
            raise ValueError(f"low is {self.low}, which is above high, {self.high}")
        return self

    def rules(self, stage: object) -> Iterable[Problem]:
        """The field must exist."""
        return field_problems(stage, self.by) if self.by is not None else ()

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` tasks: unknown ones, then the band's, then the nearest; some twice if too few.

        Raises:
            RunStopped: nothing is unknown or in the band, and `outside` is ``stop``.
        """
        far = self.distances(state, tasks)
        order = self._order(state, tasks, seed)
        unknown = [task for task in order if far[task.id] is None]
        inside = [task for task in order if far[task.id] == 0]
        outside = [task for task in order if far[task.id]]
        if self.outside == "stop":
            if tasks and not unknown and not inside:
                band = f"[{self.low:g}, {self.high:g}]"
                raise RunStopped(
                    f"curriculum success_band: none of {len(tasks)} tasks has a rate in {band}"
                )
            outside = []
        first = math.ceil(self.unknown * count)
        outside.sort(key=lambda task: far[task.id] or 0.0)  # stable: ties stay least seen first
        return repeated(list(chain(unknown[:first], inside, unknown[first:], outside)), count)

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state one iteration later, with the rates of the tasks of `results` moved."""
        done: int = state.get("iterations", 0)
        tasks: dict[str, list[Any]] = dict(state.get("tasks", {}))
        for task, mean in results.items():
            rate, _, times = tasks.get(task, (mean, 0, 0))
            tasks[task] = [self.memory * rate + (1 - self.memory) * mean, done, times + 1]
        return {**state, "iterations": done + 1, "tasks": tasks}

    def _order(self, state: State, tasks: Sequence[Task], seed: int) -> list[Task]:
        """All tasks, least seen first; by a field that within each kind, and kinds in proportion.

        A kind that comes back would else have all the draws until it had caught up.
        """
        seen = {task: own[2] for task, own in state.get("tasks", {}).items()}
        order = least_seen(tasks, seen, count=len(tasks), key=(seed, "success_band"))
        if self.by is None:
            return order
        kinds: dict[str, list[Task]] = {}
        for task in order:
            kinds.setdefault(kind_of(task, self.by), []).append(task)
        ties = uniforms((seed, "success_band", "kinds"), len(order))
        ranks = ((n, len(own)) for own in kinds.values() for n in range(len(own)))
        places = [(n + tie) / size for (n, size), tie in zip(ranks, ties, strict=True)]
        merged = sorted(zip(places, chain(*kinds.values()), strict=True), key=lambda pair: pair[0])
        return [task for _, task in merged]

    def distances(self, state: State, tasks: Sequence[Task]) -> dict[str, float | None]:
        """Task id → how far its rate lies from the band: 0 inside, None unknown."""
        kinds = {t.id: t.id if self.by is None else kind_of(t, self.by) for t in tasks}
        known: dict[str, list[tuple[float, int]]] = {}
        for task, (rate, when, _) in state.get("tasks", {}).items():
            if task in kinds:
                known.setdefault(kinds[task], []).append((rate, when))
        now: int = state.get("iterations", 0)
        far = {kind: self._distance(own, now) for kind, own in known.items()}
        return {task: far.get(kind) for task, kind in kinds.items()}

    def _distance(self, known: Sequence[tuple[float, int]], now: int) -> float | None:
        newest = max(when for _, when in known)
        weights = [self.memory ** (newest - when) for _, when in known]
        rates = sum(w * rate for w, (rate, _) in zip(weights, known, strict=True))
        rate = rates / sum(weights)
        far = max(self.low - rate, rate - self.high, 0.0)
        forgotten = self.retry is not None and now - newest > self.retry
        return None if far and forgotten else far
