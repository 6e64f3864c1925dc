"""What a report says without curves: the results, kinds of tasks, time, and the recipe."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentrecipes.tracking.report.reading import RunData, finite
from agentrecipes.tracking.report.seeds import Group, mean_by, mode_rank, point, stages

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Result:
    """One metric from start to end: ``Result("demo", "test", "greedy", "exact_match", …)``."""

    group: str
    split: str
    mode: str
    metric: str
    first: float | None  # None where it was measured once
    last: float
    half: float  # of the last value's interval; 0 for unknown
    tasks: int
    seeds: int


def results(groups: Sequence[Group]) -> list[Result]:
    """The first and the last value of all that was evaluated; the last metric's splits first."""
    found = []
    for group in groups:
        keys = dict.fromkeys(
            (str(row.get("split")), str(row.get("mode")), str(row["metric"]))
            for run in group.runs
            for row in run.evaluations
        )
        for split, mode, metric in sorted(keys, key=_rank):
            ends = [_ends(run, (split, mode, metric)) for run in group.runs]
            whole = [(own[0], own[-1]) for own in ends if own]
            last = point(
                "",
                0,
                [b["value"] for _, b in whole],
                errors=[b.get("standard_error") for _, b in whole],
            )
            firsts = [a["value"] for a, b in whole if a is not b]
            first = sum(firsts) / len(firsts) if firsts else None
            tasks = int(whole[0][1].get("tasks") or 0)
            half = (last.high - last.low) / 2
            found.append(
                Result(group.label, split, mode, metric, first, last.mean, half, tasks, len(whole))
            )
    return found


def _rank(key: tuple[str, str, str]) -> tuple[bool, bool, str, int]:
    """Test before the rest, plain metrics before pass@k, sampled before greedy."""
    split, mode, metric = key
    return split != "test", "/" in metric, split, mode_rank(mode)


def _ends(run: RunData, key: tuple[str, str, str]) -> list[Row]:
    """The run's evaluations of one split, mode and metric, in the order they were made."""
    order = list(stages([run]))
    own = [
        row
        for row in run.evaluations
        if (str(row.get("split")), str(row.get("mode")), str(row["metric"])) == key
    ]
    return sorted(own, key=lambda row: (order.index(row["stage"]), row["iteration"]))


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of task with its score at the start of each stage and at the end, in per cent of 1."""

    name: str
    starts: tuple[tuple[str, float], ...]  # (stage, value)
    last: float

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and the highest of them."""
        values = [value for _, value in self.starts] + [self.last]
        return min(values), max(values)


@dataclass(frozen=True, slots=True)
class Kinds:
    """All kinds of one evaluation."""

    title: str
    kinds: tuple[Kind, ...]
    inside: bool  # all values lie between 0 and 1, so that they can be drawn


def by_kind(groups: Sequence[Group]) -> list[Kinds]:
    """The score of each kind of task, by split and mode, of each group's first plain metric."""
    found = []
    for group in groups:
        rows = [row for run in group.runs for row in run.evaluations if row["by"]]
        metric = next((row["metric"] for row in rows if "/" not in row["metric"]), None)
        keys = {
            (str(row.get("split")), str(row.get("mode")), str(metric))
            for row in rows
            if row["metric"] == metric
        }
        for key in sorted(keys, key=_rank):
            made = _kinds(group, key)
            inside = all(0 <= end <= 1 for kind in made for end in kind.span)
            head = f"{group.label}: " if len(groups) > 1 else ""
            found.append(Kinds(f"{head}{key[0]}, {key[1]}: {key[2]}", made, inside))
    return found


def _kinds(group: Group, key: tuple[str, str, str]) -> tuple[Kind, ...]:
    ends = [own for run in group.runs if (own := _ends(run, key))]
    last = mean_by([own[-1]["by"] for own in ends])
    starts: dict[str, dict[str, float]] = {}
    for stage in stages(group.runs):
        first = [next((row for row in own[:-1] if row["stage"] == stage), None) for own in ends]
        starts[stage] = mean_by([row["by"] for row in first if row is not None])
    return tuple(
        Kind(name, tuple((s, v[name]) for s, v in starts.items() if name in v), last[name])
        for name in sorted(last)
    )


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the time: ``Share("sampling", 120.0, 24.0, 40.0, 1)``."""

    what: str
    seconds: float
    start: float  # per cent of the longest row
    width: float
    colour: int


@dataclass(frozen=True, slots=True)
class Spent:
    """The time of one stage, mean over the seeds."""

    name: str
    seconds: float
    shares: tuple[Share, ...]


ACTIVITIES = {"time/rollout_seconds": "sampling", "time/update_seconds": "updating"}
REST = "evaluating and all else"
COLOURS = {"sampling": 0, "updating": 1, REST: 5}


def time_spent(groups: Sequence[Group]) -> list[Spent]:
    """Where the time went, stage by stage; empty where no stage has ended."""
    rows: list[tuple[str, dict[str, float]]] = []
    for group in groups:
        head = f"{group.label}: " if len(groups) > 1 else ""
        outside = []
        each_stage: dict[str, list[dict[str, float]]] = {}
        for run in group.runs:
            told = [stage for stage in run.summary.get("stages") or () if stage.get("wall_seconds")]
            for stage in told:
                each_stage.setdefault(str(stage["name"]), []).append(_activities(run, stage))
            whole = run.summary.get("wall_seconds")
            if told and finite(whole):
                outside.append(max(0.0, whole - sum(stage["wall_seconds"] for stage in told)))
        rows += [(head + name, mean_by(found)) for name, found in each_stage.items()]
        if outside:
            rows.append((f"{head}before and after", {REST: sum(outside) / len(outside)}))
    longest = max((sum(parts.values()) for _, parts in rows), default=0.0)
    return [_spent(name, parts, longest) for name, parts in rows if longest > 0]


def _activities(run: RunData, stage: Row) -> dict[str, float]:
    """Seconds of each activity of a stage; a stage that reads data only updates."""
    sums = {
        name.removeprefix("time/"): sum(value for _, value in curve)
        for (own, name), curve in run.metrics.items()
        if own == stage["name"] and name.startswith("time/")
    }
    found = {
        what: sums[name.removeprefix("time/")]
        for name, what in ACTIVITIES.items()
        if name.removeprefix("time/") in sums
    }
    if not found and "total_seconds" in sums:
        found = {"updating": sums["total_seconds"]}
    return {**found, REST: max(0.0, stage["wall_seconds"] - sum(found.values()))}


def _spent(name: str, parts: Mapping[str, float], longest: float) -> Spent:
    shares, at = [], 0.0
    for what in sorted(parts, key=lambda each: COLOURS[each]):
        width = parts[what] / longest * 100
        shares.append(Share(what, parts[what], round(at, 3), round(width, 3), COLOURS[what]))
        at += width
    return Spent(name, sum(parts.values()), tuple(shares))


@dataclass(frozen=True, slots=True)
class Value:
    """A line of a recipe: ``Value("rollout.tasks", "16", "rag_r1.yaml:21")``."""

    path: str
    text: str
    origin: str

    @property
    def is_default(self) -> bool:
        """Whether nobody wrote it."""
        return self.origin in ("default", "")

    def within(self, start: str) -> Value:
        """The same value, called without the beginning of its path."""
        return replace(self, path=self.path.removeprefix(start))


def recipe_values(run: RunData) -> list[Value]:
    """Every value of the recipe; what is told as one (a list, a schedule) shares its origin."""
    return [Value(path, text, _origin(run, path)) for path, text in run.recipe.items()]


def _origin(run: RunData, path: str) -> str:
    while path:
        if path in run.origin:
            return run.origin[path].rpartition("/")[2]  # the file's name, not where it was
        path = path.rpartition(".")[0]
    return ""


def differences(groups: Sequence[Group]) -> list[tuple[str, ...]]:
    """(path, value in each group) where the recipes of the groups differ; the seed aside."""
    recipes = [group.runs[0].recipe for group in groups]
    paths = dict.fromkeys(path for recipe in recipes for path in recipe if path != "seed")
    rows = [(path, *(recipe.get(path, "–") for recipe in recipes)) for path in paths]
    return [row for row in rows if len(set(row[1:])) > 1]
