"""All tasks equally often, in a random order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from agentrecipes.components import Component, component
from agentrecipes.curricula.protocol import State
from agentrecipes.numerics.streams import uniforms
from agentrecipes.records import Task


@component("curriculum")
class Uniform(Component):
    """Draws without replacement: no task comes again before every other one was seen as often.

    State: ``{"seen": {task id: times}}``. A task whose results never came back counts as unseen.
    """

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` of the tasks seen least, ties in a random order; some twice if too few."""
        if not tasks or count < 1:
            return []
        seen: Mapping[str, int] = state.get("seen", {})
        times = np.array([seen.get(task.id, 0) for task in tasks])
        ties = uniforms((seed, "uniform"), len(tasks))
        rounds = -(-count // len(tasks))  # more picks than tasks: a task's next time comes later
        again = np.concatenate([times + extra for extra in range(rounds)])
        order = np.lexsort((np.tile(ties, rounds), again)) % len(tasks)  # by times, then by tie
        return [tasks[place] for place in order[:count].tolist()]

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state in which the tasks of `results` were seen once more."""
        seen = dict(state.get("seen", {}))
        for task in results:
            seen[task] = seen.get(task, 0) + 1
        return {**state, "seen": seen}
