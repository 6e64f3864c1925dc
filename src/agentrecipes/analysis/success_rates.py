"""How likely a task is solved, without a model: simulated, or recorded in a file or a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from agentrecipes.analysis.query import query
from agentrecipes.errors import RecipeError
from agentrecipes.recipe.lines import rows
from agentrecipes.records import Task

EASIEST, HARDEST = 0.6, 0.1  # rates of the first and the last type before any training
PACE = 200  # tasks of a type after which 1/e of its failures are left


class Rates(Protocol):
    """Success rates of tasks, and where they come from."""

    @property
    def source(self) -> str: ...

    def rate(self, task: Task, trained: Mapping[str, int]) -> float:
        """In [0, 1]; `trained` says how many tasks of each type were trained on."""
        ...


@dataclass(frozen=True, slots=True)
class Simulated:
    """By type, rising with the number of tasks of that type that were trained on.

    ``1 - (1 - start) * exp(-trained / 200)``. Types start evenly spaced from 0.6 to 0.1, in the
    order of their mean number of hops, then by name. A made-up policy, not a prediction: types do
    not help each other, and two recipes can be compared only in what comes when.
    """

    start: Mapping[str, float]

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> Simulated:
        """The types of these tasks."""
        hops: dict[str, list[float]] = {}
        for task in tasks:
            number = task.data.get("hops", 0)
            hops.setdefault(task.type, []).append(number if isinstance(number, int | float) else 0)
        order = sorted(hops, key=lambda kind: (sum(hops[kind]) / len(hops[kind]), kind))
        gap = (EASIEST - HARDEST) / max(1, len(order) - 1)
        return cls({kind: EASIEST - gap * place for place, kind in enumerate(order)})

    @property
    def source(self) -> str:
        """How the rates were made, for people."""
        named = [f"{kind or 'untyped'} {start:.3g}" for kind, start in self.start.items()]
        return f"simulated, from {', '.join(named)}; failures / e every {PACE} tasks of a type"

    def rate(self, task: Task, trained: Mapping[str, int]) -> float:
        """The type's rate; the hardest one's for a type that was not there."""
        start = self.start.get(task.type, HARDEST)
        return 1.0 - (1.0 - start) * math.exp(-trained.get(task.type, 0) / PACE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The task's own rate, else its type's, else the mean of all; training changes none."""

    source: str
    tasks: Mapping[str, float]
    types: Mapping[str, float]
    mean: float

    def rate(self, task: Task, trained: Mapping[str, int]) -> float:
        """The rate that was recorded."""
        return self.tasks.get(task.id, self.types.get(task.type, self.mean))


def from_file(path: Path, tasks: Sequence[Task]) -> Recorded:
    """The rates of a file with ``{"task": …, "rate": …}`` or ``{"type": …, "rate": …}`` a line.

    Raises:
        RecipeError: a line is neither, or none is about one of these tasks.
    """
    found: dict[str, dict[str, float]] = {"task": {}, "type": {}}
    for where, row in rows(path):
        keys = [key for key in found if isinstance(row.get(key), str)]
        rate = row.get("rate")
        number = isinstance(rate, int | float) and not isinstance(rate, bool)
        if len(keys) != 1 or not number or not 0.0 <= float(row["rate"]) <= 1.0:
            raise RecipeError(
                f"{where}: no rate of a task or type. Write "
                '{"task": ID, "rate": 0.5} or {"type": NAME, "rate": 0.5}'
            )
        found[keys[0]][row[keys[0]]] = float(row["rate"])
    return _recorded(str(path), tasks, found["task"], types=found["type"])


def from_run(folder: Path, tasks: Sequence[Task]) -> Recorded:
    """The mean returns of a run's training tasks, cut off at 0 and 1.

    Raises:
        RecipeError: the run has trained on none of these tasks.
    """
    sql = f"""
        SELECT task, avg(total) FROM trajectories
        WHERE run = '{folder.name.replace("'", "''")}' AND split = 'train' AND total IS NOT NULL
        GROUP BY task
    """
    found = query(sql, folder.parent).rows
    rates = {str(task): min(1.0, max(0.0, float(mean))) for task, mean in found}
    return _recorded(str(folder), tasks, rates, types={})


def _recorded(
    source: str, tasks: Sequence[Task], own: Mapping[str, float], *, types: Mapping[str, float]
) -> Recorded:
    """What is known of these tasks; of a type without a rate, the mean of its tasks' rates."""
    by_type: dict[str, list[float]] = {}
    for task in tasks:
        if task.id in own:
            by_type.setdefault(task.type, []).append(own[task.id])
    known = {kind: sum(rates) / len(rates) for kind, rates in by_type.items()} | dict(types)
    used = sum(map(len, by_type.values()))
    of_type = [known[task.type] for task in tasks if task.type in known]
    if not of_type:
        raise RecipeError(f"{source} holds no rate of a training task of this recipe, or its type")
    told = f"{source}: {used} of {len(tasks)} tasks, {len(known)} types; they do not change"
    return Recorded(told, own, known, sum(of_type) / len(of_type))
