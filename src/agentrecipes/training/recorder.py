"""What a running stage leaves behind: metrics, tables, traces, progress and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from agentrecipes.health.metrics import flat_metrics, rollout_metrics
from agentrecipes.tracking.protocol import Tracker
from agentrecipes.tracking.tables import MetricRow, Place, Tables
from agentrecipes.training.collecting import Iteration
from agentrecipes.training.evaluation import Evaluated
from agentrecipes.training.position import Position
from agentrecipes.training.progress import Progress

EVERY = 10  # optimizer steps of a reading stage whose mean is one point of the curve


@dataclass
class Recorder:
    """Observer of one stage. Writes what happened; decides nothing but when to evaluate."""

    stage: str
    tables: Tables
    tracker: Tracker
    progress: Progress
    stop: Callable[[], bool]
    save: Callable[[Position], None]
    evaluate: Callable[[Position], None]
    every: int  # iterations between evaluations; 0 for never
    began: float  # time.perf_counter() when the run began
    offset: int = 0  # steps of earlier stages: the tracker's axis goes on through the run
    _rows: list[MetricRow] = field(default_factory=list)
    _recent: list[Mapping[str, float]] = field(default_factory=list)

    def wants_stop(self) -> bool:
        return self.stop()

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        """Keep every step; show the mean of a few: with rows sorted by length one says nothing."""
        self._rows += self._metric_rows(step + 1, step + 1, figures)
        self._recent.append(figures)
        if (step + 1) % EVERY == 0:
            names = sorted({name for each in self._recent for name in each})
            count = len(self._recent)
            mean = {n: sum(each.get(n, 0.0) for each in self._recent) / count for n in names}
            self._recent = []
            self.tracker.metrics(mean, self.offset + step + 1)
            self.progress.advance(step + 1, mean)

    def iteration(
        self, after: Position, collected: Iteration, figures: Mapping[str, float]
    ) -> None:
        """Record the iteration that led to `after`, then evaluate where an evaluation is due."""
        number = after.iteration - 1  # updates that its weights had seen
        place = Place(self.stage, number, "train", "sampled")
        self.tables.trajectories(collected.scored, place, advantage_means=collected.advantage_means)
        again = {"rollout/refilled_groups": float(sum(collected.refills))}
        again["rollout/refill_rounds"] = float(len(collected.refills))
        values = {**rollout_metrics(collected.scored), **again, **figures}
        self._rows += self._metric_rows(number, after.iteration, values)
        self.tracker.metrics(values, self.offset + after.iteration)
        self._write()
        self.progress.advance(after.iteration, values)
        if self.every and after.iteration % self.every == 0:
            self.evaluate(after)

    def checkpoint(self, position: Position) -> None:
        self._write()
        self.save(position)

    def _metric_rows(
        self, iteration: int, step: int, values: Mapping[str, float]
    ) -> list[MetricRow]:
        seconds = time.perf_counter() - self.began
        return [MetricRow(iteration, step, name, value, seconds) for name, value in values.items()]

    def _write(self) -> None:
        """Write the rows so far; named by where they begin, they replace what an older try left."""
        if self._rows:
            self.tables.metrics(self.stage, self._rows, name=f"{self._rows[0].step - 1:08d}")
            self._rows = []


def record_evaluations(
    found: Sequence[Evaluated], *, tables: Tables, tracker: Tracker, progress: Progress, step: int
) -> None:
    """Write evaluations to the tables, the tracker (with some traces) and the watcher."""
    for each in found:
        tables.trajectories(each.scored, each.place)
        tables.evaluations(each.rows)
        tracker.metrics(flat_metrics(each.rows), step)
        tracker.trace(each.scored, each.place)
        for row in each.rows:
            progress.evaluation(as_dict(row))


def as_dict(row: object) -> dict[str, object]:
    """An evaluation row with the keys of the summary."""
    names = (
        "stage",
        "iteration",
        "split",
        "mode",
        "metric",
        "value",
        "tasks",
        "standard_error",
        "by",
        "rounds_mean",
    )
    return {name: getattr(row, name) for name in names}
