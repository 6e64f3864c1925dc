"""From the evaluations of a trial's runs to its curve and its values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentrecipes.recipe.load import Recipe
from agentrecipes.sweeps.load import Sweep
from agentrecipes.sweeps.rules import TURNS, judged_stage, metric_names
from agentrecipes.sweeps.schema import Objective

Row = Mapping[str, Any]
"""An evaluation with the keys of the summary."""


def values_of(rows: Sequence[Row], objective: Objective, recipe: Recipe) -> list[float]:
    """The evaluations that the objective looks at, in their order; nulls are left out."""
    return [value for row in rows if (value := value_of(row, objective, recipe)) is not None]


def value_of(row: Row, objective: Objective, recipe: Recipe) -> float | None:
    """What an evaluation says to the objective; None where it is another's."""
    stage = judged_stage(objective, recipe)
    assert stage is not None  # checked with the file
    # The only stage of a recipe without stages is called after its algorithm, which may vary.
    mine = len(recipe.stages) == 1 or row["stage"] == stage.name
    if not mine or (row["split"], row["mode"]) != (objective.split, objective.mode):
        return None
    if objective.metric == TURNS:
        first = row["metric"] == metric_names(stage)[0]  # every metric's row says the same
        found = row.get("rounds_mean") if first else None
    else:
        found = row["value"] if row["metric"] == objective.metric else None
    return None if found is None else float(found)


def reduced(values: Sequence[float], objective: Objective) -> float | None:
    """One number for one run; None where it was never measured."""
    if not values:
        return None
    match objective.reduce:
        case "last":
            return values[-1]
        case "mean":
            return math.fsum(values) / len(values)
        case "best":
            return max(values) if objective.direction == "maximize" else min(values)


def stretch(sweep: Sweep) -> int:
    """Points that one run puts on the curve."""
    objective = sweep.fields.objective[0]
    stage = judged_stage(objective, sweep.recipe)
    assert stage is not None
    every = stage.evaluation.every
    return 1 + (math.ceil((stage.iterations or 0) / every) if every else 1)


def points(sweep: Sweep) -> int:
    """Points of a whole trial's curve, through all of its seeds."""
    by_seed = sweep.fields.pruner.name == "wilcoxon"
    return sweep.fields.seeds if by_seed else sweep.fields.seeds * stretch(sweep)


@dataclass(frozen=True, slots=True)
class Curve:
    """A trial's curve, on which the seeds follow one another.

    While seed number s runs, a point is the mean of the s values before and of its own so far:
    what the trial would be worth if it ended there. Trials compare point by point.
    """

    sweep: Sweep
    before: tuple[float, ...] = ()  # the reduced values of the seeds that are done

    def point(self, row: Row) -> tuple[int, float] | None:
        """Step and value that an evaluation of the running seed adds; None where it adds none."""
        objective = self.sweep.fields.objective[0]
        if len(self.sweep.fields.objective) > 1 or self.sweep.fields.pruner.name == "wilcoxon":
            return None
        value = value_of(row, objective, self.sweep.recipe)
        if value is None:
            return None
        stage = judged_stage(objective, self.sweep.recipe)
        assert stage is not None
        every = stage.evaluation.every
        place = math.ceil(row["iteration"] / every) if every else min(1, row["iteration"])
        step = len(self.before) * stretch(self.sweep) + place
        return step, math.fsum((*self.before, value)) / (len(self.before) + 1)

    def after_seed(self, value: float) -> tuple[int, float] | None:
        """The point that a whole seed adds: wilcoxon compares seed by seed."""
        if self.sweep.fields.pruner.name != "wilcoxon":
            return None
        return len(self.before), value
