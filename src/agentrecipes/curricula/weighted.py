"""Some kinds of task more often than others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.curricula.drawing import repeated
from agentrecipes.curricula.kinds import By, NonNegative, field_problems, kind_of, kind_problems
from agentrecipes.curricula.protocol import State
from agentrecipes.errors import Problem, RunStopped
from agentrecipes.numerics.streams import uniforms
from agentrecipes.records import Task


@component("curriculum")
class Weighted(Component):
    """Draws each task in proportion to the weight of its kind, no task twice in an iteration.

    A weight is a task's, not a kind's: of 10 tasks that weigh 3 and 30 that weigh 1, half of the
    first draw is of either kind. Without replacement (Efraimidis and Spirakis 2006,
    https://doi.org/10.1016/j.ipl.2005.11.003), so that an iteration that takes many of a kind uses
    it up; `stages` gives kinds fixed shares instead. It keeps no state.
    """

    by: By = "type"
    weights: Annotated[Mapping[str, NonNegative], Field(min_length=1)]  # weight by kind
    others: NonNegative = 1.0  # weight of kinds that are not named

    def rules(self, stage: object) -> Iterable[Problem]:
        """The kinds must exist, and one of them must have a weight."""
        wrong = list(field_problems(stage, self.by))
        wrong = wrong or list(kind_problems(stage, self.by, names=self.weights, key="weights"))
        yield from wrong
        if not wrong and not any((*self.weights.values(), self.others)):
            found = "every weight is 0: there is nothing to pick"
            yield Problem("out_of_range", "weights", found, "Give one kind a weight above 0.")

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` tasks; only if fewer have a weight, some twice.

        Raises:
            RunStopped: no task has a weight above 0.
        """
        weights = [self.weights.get(kind_of(task, self.by), self.others) for task in tasks]
        heavy = [(task, weight) for task, weight in zip(tasks, weights, strict=True) if weight]
        if tasks and not heavy:
            raise RunStopped(
                f"curriculum weighted: none of {len(tasks)} tasks has a weight above 0"
            )
        waits = -np.log1p(-uniforms((seed, "weighted"), len(heavy)))  # exponential, mean 1
        order = np.argsort(waits / [weight for _, weight in heavy], kind="stable")
        return repeated([heavy[place][0] for place in order.tolist()], count)

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state as it was: weights do not depend on results."""
        return {**state}
