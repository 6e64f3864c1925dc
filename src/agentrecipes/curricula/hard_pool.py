"""What is not mastered yet: a task that was accepted leaves the pool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.curricula.drawing import counted, least_seen
from agentrecipes.curricula.protocol import State
from agentrecipes.errors import RunStopped
from agentrecipes.records import Task

Positive = Annotated[int, Field(ge=1)]


@component("curriculum")
class HardPool(Component):
    """Draws from the tasks that were not accepted yet; an accepted one never comes back.

    FunReason's hard-data refinement (BalanceSFT 2025, https://arxiv.org/abs/2505.20192): in up to
    10 loops over the pool, what all judges accept leaves it. Here a task is accepted when its mean
    return reaches `accept_from`, which at 1 means every attempt of its group, and within the pool
    tasks come as in `uniform`. State: ``{"seen": {task id: times}, "accepted": [task ids]}``.
    """

    accept_from: float = 1.0  # mean return of a group from which its task is accepted
    loops: Positive | None = 10  # times a task is tried before it leaves unaccepted; null: any
    empty: Literal["stop", "refill"] = "stop"  # what follows when nothing is left in the pool

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` tasks of the pool; some twice if it holds too few.

        Raises:
            RunStopped: the pool is empty, and `empty` is ``stop``.
        """
        seen: Mapping[str, int] = state.get("seen", {})
        accepted = set(state.get("accepted", ()))
        tried = {task for task, times in seen.items() if self.loops and times >= self.loops}
        pool = [task for task in tasks if task.id not in accepted | tried]
        if tasks and not pool and self.empty == "stop":
            good = sum(task.id in accepted for task in tasks)
            raise RunStopped(
                f"curriculum hard_pool: the pool is empty; of {len(tasks)} tasks {good} were "
                f"accepted and {len(tasks) - good} tried {self.loops} times"
            )
        return least_seen(pool or tasks, seen, count=count, key=(seed, "hard_pool"))

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state in which the tasks of `results` were tried once more, or accepted."""
        good = {task for task, mean in results.items() if mean >= self.accept_from}
        accepted = sorted(good | set(state.get("accepted", ())))
        return {**state, "seen": counted(state, results), "accepted": accepted}
