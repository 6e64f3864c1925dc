"""How curricula draw: least seen first, ties in a random order, whole rounds before repeats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle, islice

import numpy as np

from agentrecipes.curricula.protocol import State
from agentrecipes.numerics.streams import Key, derive, uniforms
from agentrecipes.records import Task


def least_seen(
    tasks: Sequence[Task], seen: Mapping[str, int], *, count: int, key: Key
) -> list[Task]:
    """`count` of the tasks seen least, ties in a random order; some twice if too few."""
    if not tasks or count < 1:
        return []
    times = np.array([seen.get(task.id, 0) for task in tasks])
    ties = uniforms(key, len(tasks))
    rounds = -(-count // len(tasks))  # more picks than tasks: a task's next time comes later
    again = np.concatenate([times + extra for extra in range(rounds)])
    order = np.lexsort((np.tile(ties, rounds), again)) % len(tasks)  # by times, then by tie
    return [tasks[place] for place in order[:count].tolist()]


def counted(state: State, results: Mapping[str, float]) -> dict[str, int]:
    """Task id → times seen, with the tasks of `results` seen once more."""
    seen = dict(state.get("seen", {}))
    for task in results:
        seen[task] = seen.get(task, 0) + 1
    return seen


def repeated(order: Sequence[Task], count: int) -> list[Task]:
    """The first `count` of `order`, which begins anew at its end."""
    return list(islice(cycle(order), count)) if order else []


def apportioned(shares: Sequence[float], count: int, *, key: Key) -> list[int]:
    """`count` as whole numbers in proportion to `shares`, each off by less than one.

    Systematic sampling: what does not come out even is drawn, so that the mean over seeds is exact.
    """
    ends = np.cumsum(shares) / sum(shares) * count
    ends[-1] = count  # rounding must not lose the last one
    whole = np.floor(ends + uniforms(key, 1)[0]).astype(int)
    numbers: list[int] = np.diff(whole, prepend=0).tolist()
    return numbers


def pick_seed(seed: int, stage: str, *, iteration: int, rounds: int = 0) -> int:
    """The seed of a draw; `rounds` counts refills within an iteration."""
    return derive(seed, stage, iteration, "tasks", rounds)
