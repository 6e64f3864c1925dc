"""Which curves a report draws: scores, reward parts, how trajectories ended, what was logged."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agentrecipes.tracking.report.plot import Axis, Plot, Series, plot
from agentrecipes.tracking.report.reading import RunData
from agentrecipes.tracking.report.seeds import (
    BANDS,
    Group,
    Point,
    evaluation_curve,
    metric_curve,
    mode_rank,
    stages,
    unit,
)

MARKED = 120  # points of a large figure, each with its title
SMALL = 60  # points of a small one, without
SCORES, SMALL_FIGURES = 8, 80  # the most figures of a kind
COUNTS = ("_null", "_not_finite")  # how the names of rewards' counts end


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot with its words and the numbers behind it."""

    key: str  # an id within the page
    title: str
    note: str
    plot: Plot
    columns: tuple[str, ...] = ()  # of the table of numbers; empty for none
    rows: tuple[tuple[str, ...], ...] = ()
    last: str = ""  # the newest value, for small figures


def scores(groups: Sequence[Group]) -> list[Figure]:
    """One figure per evaluated metric, all stages side by side."""
    runs = [run for group in groups for run in group.runs]
    lengths = stages(runs)
    figures = []
    for index, metric in enumerate(_metrics(runs)[:SCORES]):
        series = [
            each
            for number, group in enumerate(groups)
            for each in _score_lines(group, metric, number=number, several=len(groups) > 1)
        ]
        shown = {
            stage: len({p.iteration for each in series for p in each.points if p.stage == stage})
            for stage in lengths
        }
        axis = Axis.of({stage: lengths[stage] for stage in lengths if shown[stage]}, shown)
        kinds = dict.fromkeys(p.kind for each in series for p in each.points if p.high > p.low)
        note = "; ".join(BANDS[kind] for kind in kinds)
        columns, rows = _numbers(series, list(lengths))
        drawn = plot(series, axis)
        figures.append(Figure(f"score-{index}", metric, note, drawn, columns, rows))
    return figures


def _metrics(runs: Iterable[RunData]) -> list[str]:
    """Plain metrics first, in the order they were evaluated; pass@k after them."""
    found = dict.fromkeys(str(row["metric"]) for run in runs for row in run.evaluations)
    return sorted(found, key=lambda name: "/" in name)


def _score_lines(group: Group, metric: str, *, number: int, several: bool) -> list[Series]:
    keys = sorted(
        {
            (str(row.get("split")), str(row.get("mode")))
            for run in group.runs
            for row in run.evaluations
            if row["metric"] == metric
        },
        key=lambda key: (key[0] == "test", key[0], mode_rank(key[1])),
    )
    lines = []
    for split, mode in keys:
        points = evaluation_curve(group, split, mode, metric=metric)
        colour = number if several else mode_rank(mode)
        name = f"{split}, {mode}"
        lines.append(
            Series(
                f"{group.label}: {name}" if several else name,
                points,
                colour,
                dashed=several and mode != "sampled",
            )
        )
    return lines


def _numbers(
    series: Sequence[Series], order: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, ...], ...]]:
    """The series side by side as a table, a row for each place on the axis."""
    places = sorted(
        {(p.stage, p.iteration) for each in series for p in each.points},
        key=lambda place: (order.index(place[0]), place[1]),
    )
    values = [{(p.stage, p.iteration): p for p in each.points} for each in series]
    rows = [
        (f"{place[0]} {place[1]}", *(_cell(each.get(place)) for each in values)) for place in places
    ]
    return ("at", *(each.name for each in series)), tuple(rows)


def _cell(point: Point | None) -> str:
    if point is None:
        return ""
    half = (point.high - point.low) / 2
    return f"{point.mean:.3f}" + (f" ± {half:.3f}" if half else "")


def reward_parts(groups: Sequence[Group]) -> list[Figure]:
    """For each collecting stage, the mean of every reward part and of their total."""
    figures: list[Figure] = []
    for stage in _stages_with(groups, "reward/"):
        lines = _merged(_lines(groups, stage, "reward/"))
        note = _nulls(groups, stage)
        words = (f"reward-{len(figures)}", f"Reward parts, {stage}", note)
        figures.append(_joined(groups, stage, lines, words=words))
    return figures


def stops(groups: Sequence[Group]) -> list[Figure]:
    """For each collecting stage, the share of trajectories that gave no answer, by the reason."""
    figures: list[Figure] = []
    for stage in _stages_with(groups, "rollout/stop_"):
        lines = _lines(groups, stage, "rollout/stop_", without="answered")
        some = [each for each in lines if any(p.mean for p in each.points)]
        never = [each.name for each in lines if each not in some]
        note = f"Never: {', '.join(never)}." if never else ""
        if some:
            coloured = [replace(each, colour=index) for index, each in enumerate(some)]
            words = (f"stop-{len(figures)}", f"Ended without an answer, {stage}", note)
            figures.append(_joined(groups, stage, coloured, words=words))
    return figures


def _stages_with(groups: Sequence[Group], prefix: str) -> list[str]:
    runs = [run for group in groups for run in group.runs]
    having = {stage for run in runs for stage, name in run.metrics if name.startswith(prefix)}
    return [stage for stage in stages(runs) if stage in having]


def _lines(groups: Sequence[Group], stage: str, prefix: str, *, without: str = "") -> list[Series]:
    """A line for each of the stage's metrics of that prefix and each group; counts are none."""
    names = dict.fromkeys(
        name.removeprefix(prefix)
        for group in groups
        for run in group.runs
        for own, name in run.metrics
        if own == stage and name.startswith(prefix) and not name.endswith(COUNTS)
    )
    several = len(groups) > 1
    found = [
        (f"{group.label}: {name}" if several else name, number, points)
        for name in names
        if name != without
        for number, group in enumerate(groups)
        if (points := metric_curve(group, stage, prefix + name, most=MARKED))
    ]
    return [
        Series(name, points, index, dashed=number > 0)
        for index, (name, number, points) in enumerate(found)
    ]


def _merged(lines: Sequence[Series]) -> list[Series]:
    """Equal lines as one, under all their names: a total of one part hides it otherwise."""
    found: dict[tuple[Point, ...], Series] = {}
    for each in lines:
        key = tuple(each.points)
        old = found.get(key)
        found[key] = replace(old, name=f"{old.name} = {each.name}") if old else each
    return list(found.values())


def _joined(
    groups: Sequence[Group], stage: str, lines: Sequence[Series], *, words: tuple[str, str, str]
) -> Figure:
    """The stage's lines in one plot; `words` are its key, title and note."""
    length = stages(run for group in groups for run in group.runs)[stage]
    return Figure(*words, plot(lines, Axis.of({stage: length}, {}), named=False))


def _nulls(groups: Sequence[Group], stage: str) -> str:
    """How many rewards could not be computed, in words; nothing where there are none."""
    lost: dict[str, float] = {}
    for group in groups:
        for run in group.runs:
            for (own, name), curve in run.metrics.items():
                if own == stage and name.startswith("reward/") and name.endswith(COUNTS):
                    part = name.removeprefix("reward/").replace("_", " ")
                    lost[part] = lost.get(part, 0.0) + sum(value for _, value in curve)
    told = [f"{part} {count:,.0f}" for part, count in lost.items() if count]
    return f"Trajectories without a reward: {', '.join(told)}." if told else ""


def logged(groups: Sequence[Group]) -> dict[str, list[Figure]]:
    """Stage → a small figure of every metric that was logged in it and changes."""
    runs = [run for group in groups for run in group.runs]
    found: dict[str, list[Figure]] = {}
    for stage, length in stages(runs).items():
        names = sorted({name for run in runs for own, name in run.metrics if own == stage})
        axis = Axis.of({stage: length}, {})
        figures: list[Figure] = []
        for name in names[:SMALL_FIGURES]:
            series = [
                Series(group.label, points, number, marks=False)
                for number, group in enumerate(groups)
                if (points := metric_curve(group, stage, name, most=SMALL))
            ]
            if len({p.mean for each in series for p in each.points}) > 1:
                key = f"log-{len(found)}-{len(figures)}"
                last = f"{series[0].points[-1].mean:.4g}"
                drawn = plot(series, axis, named=False)
                figures.append(Figure(key, name, unit(runs, stage), drawn, last=last))
        if figures:
            found[stage] = figures
    return found
