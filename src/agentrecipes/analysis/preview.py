"""Which tasks a curriculum picks when, played without a model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentrecipes.analysis.success_rates import Rates
from agentrecipes.curricula.drawing import pick_seed
from agentrecipes.curricula.kinds import kind_of
from agentrecipes.errors import RunStopped
from agentrecipes.numerics.streams import uniforms
from agentrecipes.recipe.schema import Stage
from agentrecipes.records import Task


@dataclass(frozen=True, slots=True)
class Drawn:
    """One iteration's tasks, and how likely they were solved when they were picked."""

    iteration: int
    tasks: tuple[Task, ...]
    rates: tuple[float, ...]  # one per task

    def shares(self, by: str) -> dict[str, float]:
        """The share of each kind that was picked; by name."""
        numbers = Counter(kind_of(task, by) for task in self.tasks)
        return {kind: numbers[kind] / len(self.tasks) for kind in sorted(numbers)}

    @property
    def expected_success(self) -> float:
        """The mean rate."""
        return sum(self.rates) / len(self.rates)


@dataclass(frozen=True, slots=True)
class Preview:
    """The iterations, and why there were no more; "" where all were played."""

    iterations: tuple[Drawn, ...]
    stopped: str = ""


def preview(at: Callable[[int], Stage], rates: Rates, *, iterations: int, seed: int) -> Preview:
    """The draws of a stage whose fields in an iteration are ``at(iteration)``.

    The seeds are the run's own, so that a curriculum which ignores results picks what the run
    picks. Each of the `group_size` attempts at a task succeeds with its rate, a return of 1, or
    fails, 0; every group counts, as if nothing was dropped or refilled.
    """
    first = at(0)
    tasks: Sequence[Task] = first.environment.tasks("train")
    state: Mapping[str, Any] = {}
    trained: Counter[str] = Counter()
    found: list[Drawn] = []
    for iteration in range(iterations):
        stage = at(iteration)
        own = pick_seed(seed, first.name, iteration=iteration)
        try:
            picked = stage.curriculum.pick(state, tasks, count=stage.rollout.tasks, seed=own)
        except RunStopped as stopped:
            return Preview(tuple(found), f"iteration {iteration}: {stopped}")
        if not picked:
            said = f"iteration {iteration}: the curriculum found nothing among {len(tasks)} tasks"
            return Preview(tuple(found), said)
        likely = tuple(rates.rate(task, trained) for task in picked)
        found.append(Drawn(iteration, tuple(picked), likely))
        results = _results(picked, likely, seed=own, group=stage.rollout.group_size)
        state = stage.curriculum.observe(state, results)
        trained.update(task.type for task in picked)
    return Preview(tuple(found))


def _results(
    picked: Sequence[Task], rates: Sequence[float], *, seed: int, group: int
) -> dict[str, float]:
    """Task id → mean return over all attempts of the iteration."""
    totals: dict[str, list[float]] = {}
    for place, (task, rate) in enumerate(zip(picked, rates, strict=True)):
        draws = uniforms((seed, "attempts", place), group)
        totals.setdefault(task.id, []).append(float((draws < rate).mean()))
    return {task: sum(means) / len(means) for task, means in totals.items()}
