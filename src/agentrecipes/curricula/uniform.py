"""All tasks equally often, in a random order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentrecipes.components import Component, component
from agentrecipes.curricula.drawing import counted, least_seen
from agentrecipes.curricula.protocol import State
from agentrecipes.records import Task


@component("curriculum")
class Uniform(Component):
    """Draws without replacement: no task comes again before every other one was seen as often.

    State: ``{"seen": {task id: times}}``. A task whose results never came back counts as unseen.
    """

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` of the tasks seen least, ties in a random order; some twice if too few."""
        return least_seen(tasks, state.get("seen", {}), count=count, key=(seed, "uniform"))

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state in which the tasks of `results` were seen once more."""
        return {**state, "seen": counted(state, results)}
