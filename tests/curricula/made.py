"""Tasks and short runs of a curriculum, for the tests of all of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from agentrecipes.curricula.protocol import Curriculum
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Task


def tasks(**numbers: int) -> list[Task]:
    """``tasks(easy=2, hard=1)``: easy-0, easy-1 and hard-0, of the types easy and hard."""
    return [
        Task(f"{kind}-{n}", "train", "?", ("x",), {"type": kind})
        for kind, number in numbers.items()
        for n in range(number)
    ]


def after(curriculum: Curriculum, *results: dict[str, float]) -> Any:
    """The state after some iterations, as a checkpoint would bring it back."""
    state: Any = {}
    for each in results:
        state = json.loads(json.dumps(curriculum.observe(state, each)))
    return state


def ids(picked: Sequence[Task]) -> list[str]:
    return [task.id for task in picked]


def kinds(picked: Sequence[Task]) -> Counter[str]:
    return Counter(task.type for task in picked)


def played(
    curriculum: Curriculum, own: Sequence[Task], result: Callable[[Task], float], **given: int
) -> list[list[str]]:
    """The ids of every iteration's draw; `result` says what a task's mean return is."""
    state: Any = {}
    draws = []
    for iteration in range(given["iterations"]):
        picked = curriculum.pick(state, own, count=given["count"], seed=derive(1, iteration))
        state = json.loads(
            json.dumps(curriculum.observe(state, {task.id: result(task) for task in picked}))
        )
        draws.append(ids(picked))
    return draws
