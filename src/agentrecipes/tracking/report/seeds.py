"""Runs of one recipe as one curve: the mean over its seeds, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentrecipes.tracking.report.reading import Curve, RunData

# Student's t, 97.5 %, for 2 to 30 degrees of freedom: a 95 % interval of a mean of few seeds.
T_975 = (
    *(4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145),
    *(2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052),
    *(2.048, 2.045, 2.042),
)
NORMAL_975 = 1.960

BANDS = {
    "t": "mean over seeds with its 95 % interval (Student's t), each seed as a thin line",
    "range": "mean of two seeds; the band reaches from one to the other",
    "tasks": "one seed; the band is a 95 % interval over the evaluation's tasks",
    "none": "one seed",
}


@dataclass(frozen=True, slots=True)
class Group:
    """Runs that share a recipe: its seeds."""

    label: str
    runs: tuple[RunData, ...]

    @property
    def seeds(self) -> str:
        """The seeds in words: ``seed 7`` or ``seeds 7, 8``."""
        found = sorted({str(run.summary.get("seed", "?")) for run in self.runs})
        return f"seed{'s' if len(found) > 1 else ''} {', '.join(found)}"


@dataclass(frozen=True, slots=True)
class Point:
    """One figure at one iteration: ``Point("reinforce", 10, 0.5, 0.4, 0.6, (0.45, 0.55))``."""

    stage: str
    iteration: int
    mean: float
    low: float
    high: float
    values: tuple[float, ...]  # of each seed that has one
    kind: str = "none"  # of BANDS


def groups(runs: Sequence[RunData]) -> list[Group]:
    """The runs by recipe, in the order given; what they are called tells them apart."""
    found: dict[str, list[RunData]] = {}
    for run in runs:
        found.setdefault(str(run.summary.get("recipe_hash") or run.name), []).append(run)
    names = [_name(each[0]) for each in found.values()]
    marks = [
        key[:6] if names.count(name) > 1 else "" for key, name in zip(found, names, strict=True)
    ]
    return [
        Group(f"{name} {mark}".strip(), tuple(each))
        for name, mark, each in zip(names, marks, found.values(), strict=True)
    ]


def _name(run: RunData) -> str:
    profile = run.summary.get("profile")
    name = run.recipe.get("name") or run.name
    return f"{name} ({profile})" if profile else name


def point(
    stage: str, iteration: int, values: Sequence[float], *, errors: Iterable[float | None] = ()
) -> Point:
    """The mean of the seeds' values with its interval; `errors` are their standard errors."""
    count, mean = len(values), math.fsum(values) / len(values)
    kind, half = "none", 0.0
    if count == 2:
        kind, half = "range", abs(values[0] - values[1]) / 2
    elif count > 2:
        spread = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
        t = T_975[count - 3] if count - 3 < len(T_975) else NORMAL_975
        kind, half = "t", t * spread / math.sqrt(count)
    else:
        error = next(iter(errors), None)
        if error is not None:
            kind, half = "tasks", NORMAL_975 * error
    return Point(stage, iteration, mean, mean - half, mean + half, tuple(values), kind)


def evaluation_curve(group: Group, split: str, mode: str, *, metric: str) -> list[Point]:
    """One point for each stage and iteration at which any seed was evaluated."""
    found: dict[tuple[str, int], list[tuple[float, float | None]]] = {}
    for run in group.runs:
        for row in run.evaluations:
            if (row.get("split"), row.get("mode"), row["metric"]) == (split, mode, metric):
                key = (row["stage"], row["iteration"])
                found.setdefault(key, []).append((row["value"], row.get("standard_error")))
    return [
        point(*key, [value for value, _ in each], errors=[error for _, error in each])
        for key, each in found.items()
    ]


def metric_curve(group: Group, stage: str, name: str, *, most: int) -> list[Point]:
    """The metric of each seed, thinned to `most` points, and their mean."""
    found: dict[int, list[float]] = {}
    for run in group.runs:
        for iteration, value in thinned(run.metrics.get((stage, name), ()), most):
            found.setdefault(iteration, []).append(value)
    return [point(stage, iteration, found[iteration]) for iteration in sorted(found)]


def thinned(curve: Curve, most: int) -> Curve:
    """At most `most` points: means of neighbours, at the last iteration of each bunch."""
    if not curve:
        return curve
    bunch = -(-len(curve) // most)
    cut = [curve[start : start + bunch] for start in range(0, len(curve), bunch)]
    return [(each[-1][0], math.fsum(value for _, value in each) / len(each)) for each in cut]


def stages(runs: Iterable[RunData]) -> dict[str, int]:
    """Stage → its length in steps or iterations, in the recipe's order."""
    found: dict[str, int] = {}
    for run in runs:
        named = [path.split(".")[1] for path in run.recipe if path.startswith("stages.")]
        for stage in dict.fromkeys([*named, *(row["stage"] for row in run.evaluations)]):
            found[stage] = max(found.get(stage, 0), _length(run, stage))
        for stage, _ in run.metrics:
            found.setdefault(stage, _length(run, stage))
    return found


def _length(run: RunData, stage: str) -> int:
    told = {each.get("name"): each for each in run.summary.get("stages") or ()}.get(stage, {})
    written = [run.recipe.get(f"stages.{stage}.{key}", "") for key in ("steps", "iterations")]
    seen = [row["iteration"] for row in run.evaluations if row["stage"] == stage]
    seen += [curve[-1][0] for (own, _), curve in run.metrics.items() if own == stage and curve]
    done = told.get("iterations") or told.get("steps")
    return max(
        [*seen, *([done] if done else [int(text) for text in written if text.isdigit()])], default=0
    )


MODES = ("sampled", "greedy")


def mode_rank(mode: str) -> int:
    """The place of a mode of evaluation wherever modes are listed, and its colour."""
    return MODES.index(mode) if mode in MODES else len(MODES)


def unit(runs: Iterable[RunData], stage: str) -> str:
    """What a stage counts: "iteration", or "step" where it reads data."""
    for run in runs:
        if run.recipe.get(f"stages.{stage}.steps", "null").isdigit():
            return "step"
    return "iteration"


def mean_by(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Key → mean over the rows that have it."""
    keys = dict.fromkeys(key for row in rows for key in row)
    return {
        key: math.fsum(values) / len(values)
        for key in keys
        if (values := [row[key] for row in rows if row.get(key) is not None])
    }
