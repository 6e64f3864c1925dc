"""Curves as geometry: everything in per cent of the plot, so that one drawing fits any screen.

Lines and bands are paths in a box of 1000 x 1000 that is stretched to the plot; points and labels
stand at percentages and keep their size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentrecipes.tracking.report.seeds import Point

BOX = 1000
LEAST_SHARE = 0.2  # of the width, for a stage that has little to show
COLOURS = 6  # classes s0 to s5 of the style sheet


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a plot: ``Series("dev, sampled", points, 0)``."""

    name: str
    points: Sequence[Point]
    colour: int
    dashed: bool = False
    marks: bool = True  # points that tell their value, and a line for each seed

    @property
    def single(self) -> bool:
        """Whether there is nothing to join by a line."""
        return len(self.points) == 1


@dataclass(frozen=True, slots=True)
class Axis:
    """Stages side by side: each starts where the one before ended, with the same weights."""

    starts: Mapping[str, float]  # shares of the width
    widths: Mapping[str, float]
    lengths: Mapping[str, int]

    @classmethod
    def of(cls, lengths: Mapping[str, int], shown: Mapping[str, int]) -> Axis:
        """An axis for `lengths`; `shown` is how many points each stage has, and so its share."""
        weights = {stage: max(1, shown.get(stage, 0)) for stage in lengths}
        least = min(LEAST_SHARE, 1 / max(1, len(weights)))
        total = sum(weights.values())
        shares = {stage: max(least, weight / total) for stage, weight in weights.items()}
        whole = sum(shares.values())
        widths = {stage: share / whole for stage, share in shares.items()}
        starts, at = {}, 0.0
        for stage, width in widths.items():
            starts[stage] = at
            at += width
        return cls(starts, widths, lengths)

    def x(self, stage: str, iteration: float) -> float:
        """Where an iteration of a stage stands, from 0 to 1."""
        length = max(1, self.lengths.get(stage, 1))
        return self.starts.get(stage, 0.0) + self.widths.get(stage, 1.0) * min(
            1, iteration / length
        )


@dataclass(frozen=True, slots=True)
class Tick:
    """A label at a share of the axis: ``Tick(50.0, "0.5")``."""

    at: float  # per cent, from the left or from the top
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with what it says."""

    x: float  # per cent
    y: float
    title: str


@dataclass(frozen=True, slots=True)
class Line:
    """A series, drawn."""

    name: str
    colour: int
    dashed: bool
    single: bool
    path: str
    band: str
    thin: tuple[str, ...]  # one path a seed
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Plot:
    """What the template draws."""

    lines: tuple[Line, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    borders: tuple[Tick, ...]  # where stages begin, with their names


def plot(series: Sequence[Series], axis: Axis, *, named: bool = True) -> Plot:
    """The series on the axis; stages are `named` below it."""
    low, high = bounds([value for each in series for p in each.points for value in _extent(p)])
    ticks = nice_ticks(low, high)
    low, high = min(low, ticks[0]), max(high, ticks[-1])
    scale = _Scale(axis, low, high)
    decimals = _decimals(ticks)
    return Plot(
        lines=tuple(scale.line(each) for each in series),
        x_ticks=tuple(_x_ticks(axis)),
        y_ticks=tuple(Tick(scale.y(tick) * 100, f"{tick:.{decimals}f}") for tick in ticks),
        borders=tuple(Tick(axis.starts[s] * 100, s if named else "") for s in axis.starts),
    )


@dataclass(frozen=True, slots=True)
class _Scale:
    axis: Axis
    low: float
    high: float

    def y(self, value: float) -> float:
        """From 0 at the top to 1 at the bottom; what lies outside is drawn at the border."""
        share = (value - self.low) / (self.high - self.low)
        return 1 - min(1.0, max(0.0, share))

    def line(self, series: Series) -> Line:
        order = {stage: index for index, stage in enumerate(self.axis.starts)}
        points = sorted(series.points, key=lambda p: (order.get(p.stage, 0), p.iteration))
        xs = [self.axis.x(p.stage, p.iteration) for p in points]
        seeds = max((len(p.values) for p in points), default=0)
        whole = [(x, p) for x, p in zip(xs, points, strict=True) if len(p.values) == seeds]
        thin = [self._path([(x, p.values[seed]) for x, p in whole]) for seed in range(seeds)]
        edges = [(x, p.high) for x, p in zip(xs, points, strict=True)]
        edges += [(x, p.low) for x, p in reversed(list(zip(xs, points, strict=True)))]
        has_band = any(p.high > p.low for p in points) and len(points) > 1
        return Line(
            name=series.name,
            colour=series.colour % COLOURS,
            dashed=series.dashed,
            single=series.single,
            path=self._path([(x, p.mean) for x, p in zip(xs, points, strict=True)]),
            band=f"{self._path(edges)}Z" if has_band else "",
            thin=tuple(thin) if seeds > 1 and len(whole) > 1 and series.marks else (),
            dots=tuple(
                Dot(round(x * 100, 2), round(self.y(p.mean) * 100, 2), says(series.name, p))
                for x, p in zip(xs, points, strict=True)
                if series.marks
            ),
        )

    def _path(self, points: Sequence[tuple[float, float]]) -> str:
        pairs = [f"{x * BOX:.4g} {self.y(value) * BOX:.4g}" for x, value in points]
        return f"M{'L'.join(pairs)}" if pairs else ""


def says(name: str, point: Point) -> str:
    """A point in words, for its title."""
    text = f"{name}, {point.stage} {point.iteration}: {point.mean:.4g}"
    if point.high > point.low:
        text += f" ({point.low:.3g} to {point.high:.3g})"
    return text if len(point.values) < 2 else f"{text}, {len(point.values)} seeds"


def bounds(values: Sequence[float]) -> tuple[float, float]:
    """The range to draw: 0 to 1 where every value lies there and they use it, else their own."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    if low >= 0.0 and high <= 1.0 and (high > 0.3 or low == high):
        return 0.0, 1.0
    if low > 0.0 and low < high / 2:
        low = 0.0
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _extent(point: Point) -> tuple[float, ...]:
    """What has to fit: a band may leave the plot, where its values lie between 0 and 1."""
    if all(0.0 <= value <= 1.0 for value in point.values):
        return point.values
    return (*point.values, point.low, point.high)


def nice_ticks(low: float, high: float, wanted: int = 4) -> list[float]:
    """Round numbers from at or below `low` to at or above `high`."""
    raw = (high - low) / wanted
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * each for each in (1, 2, 2.5, 5, 10) if power * each >= raw * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [step * index for index in range(first, last + 1)]


def _decimals(ticks: Sequence[float]) -> int:
    step = ticks[1] - ticks[0]
    return next((d for d in range(9) if abs(step - round(step, d)) < step * 1e-6), 9)


def _x_ticks(axis: Axis) -> list[Tick]:
    """Some iterations of each stage; the end of one is the start of the next and has no label."""
    ticks = []
    last = list(axis.starts)[-1] if axis.starts else ""
    for stage, length in axis.lengths.items():
        count = max(1, round(axis.widths[stage] * 5))
        step = nice_ticks(0, max(1, length), count)[1]
        marks = [step * i for i in range(int(length / step) + 1)] if step >= 1 else [0, length]
        for mark in marks:
            if mark < length * 0.9 or stage == last:
                ticks.append(Tick(round(axis.x(stage, mark) * 100, 2), f"{mark:,.0f}"))
    return ticks
