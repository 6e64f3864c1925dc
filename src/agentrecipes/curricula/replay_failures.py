"""All tasks, and some of those that failed lately once more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.curricula.drawing import apportioned, counted, least_seen
from agentrecipes.curricula.protocol import State
from agentrecipes.numerics.streams import uniforms
from agentrecipes.records import Task

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Positive = Annotated[int, Field(ge=1)]


@component("curriculum")
class ReplayFailures(Component):
    """Gives a share of each iteration to recently failed tasks, the rest as in `uniform`.

    The task comes again and is attempted anew; its old trajectories do not (that would be
    ``rollout.replay``). A task that is solved, or that newer failures push out, is no longer
    among them. State: ``{"seen": {task id: times}, "failed": [task ids, the newest last]}``.
    """

    share: Share = 0.25  # of an iteration, as far as there are failed tasks
    below: float = 0.5  # a mean return below this is a failure
    capacity: Positive = 256  # most failed tasks that are remembered

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` tasks: failed ones in a random order, then others; some twice if too few."""
        remembered = set(state.get("failed", ()))
        failed = [task for task in tasks if task.id in remembered]
        [wanted, _] = apportioned([self.share, 1 - self.share], count, key=(seed, "share"))
        ties = uniforms((seed, "replay_failures"), len(failed))
        again = [failed[place] for place in ties.argsort(kind="stable").tolist()[:wanted]]
        chosen = {task.id for task in again}
        others = [task for task in tasks if task.id not in chosen] or tasks
        left, seen = count - len(again), state.get("seen", {})
        return again + least_seen(others, seen, count=left, key=(seed, "uniform"))

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state in which the tasks of `results` failed, or did not, last."""
        failed = [task for task in state.get("failed", ()) if task not in results]
        failed += sorted(task for task, mean in results.items() if mean < self.below)
        return {**state, "seen": counted(state, results), "failed": failed[-self.capacity :]}
