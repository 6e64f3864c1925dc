"""What a running stage leaves behind: metrics, tables, traces, progress and checkpoints."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from agentrecipes.health.metrics import flat_metrics, rollout_metrics
from agentrecipes.records import Scored
from agentrecipes.tracking.protocol import Tracker
from agentrecipes.tracking.tables import MetricRow, Place, Tables
from agentrecipes.training.collecting import Iteration
from agentrecipes.training.evaluation import Evaluated
from agentrecipes.training.position import Position
from agentrecipes.training.progress import Progress

Watch = Callable[[Position, Sequence[Scored], Mapping[str, float]], None]
TRAIN_EVALUATION = "train-evaluation"  # the split, in tables of trajectories, of such a measuring
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
    watch: Watch | None = None  # asked after each iteration; may stop the run
    offset: int = 0  # steps of earlier stages: the tracker's axis goes on through the run
    recent: list[Mapping[str, float]] = field(default_factory=list)  # steps since the last mean
    _rows: list[MetricRow] = field(default_factory=list)

    def wants_stop(self) -> bool:
        return self.stop()

    def step(self, step: int, figures: Mapping[str, float]) -> None:
        """Keep every step; show the mean of a few: with rows sorted by length one says nothing."""
        self._rows += self._metric_rows(step + 1, step + 1, figures)
        self.recent.append(figures)
        if (step + 1) % EVERY == 0:
            mean = mean_of(self.recent)
            self.recent = []
            self.tracker.metrics(mean, self.offset + step + 1)
            self.progress.advance(step + 1, mean)

    def iteration(
        self, after: Position, collected: Iteration, figures: Mapping[str, float]
    ) -> None:
        """Record the iteration that led to `after`, then evaluate where an evaluation is due."""
        number = after.iteration - 1  # updates that its weights had seen
        place = Place(self.stage, number, "train", "sampled")
        self.tables.trajectories(
            collected.scored,
            place,
            advantage_means=collected.advantage_means,
            advantages=collected.advantages or None,
        )
        again = {"rollout/refilled_groups": float(sum(collected.refills))}
        again["rollout/refill_rounds"] = float(len(collected.refills))
        values = {**rollout_metrics(collected.scored), **again, **figures}
        self._rows += self._metric_rows(number, after.iteration, values)
        self.tracker.metrics(values, self.offset + after.iteration)
        self._write()
        self.progress.advance(after.iteration, values)
        due = self.every and after.iteration % self.every == 0
        if due and (self.watch or not self.stop()):  # saving comes first; a resumed run makes it up
            self.evaluate(after)
        if self.watch is not None:
            self.watch(after, collected.scored, values)

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


def mean_of(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of every figure over the steps; what a step did not have counts as zero."""
    names = sorted({name for each in steps for name in each})
    return {name: sum(each.get(name, 0.0) for each in steps) / len(steps) for name in names}


def record_evaluations(
    found: Sequence[Evaluated], *, tables: Tables, tracker: Tracker, progress: Progress, step: int
) -> None:
    """Write evaluations to the tables, the tracker (with some traces) and the watcher."""
    for each in found:
        tables.trajectories(each.scored, _told_apart(each.place))
        tables.evaluations(each.rows)
        tracker.metrics(flat_metrics(each.rows), step)
        tracker.trace(each.scored, each.place)
        for row in each.rows:
            progress.evaluation(as_dict(row))


def _told_apart(place: Place) -> Place:
    """Where an evaluation's trajectories stand: on training tasks they are no training rows."""
    return replace(place, split=TRAIN_EVALUATION) if place.split == "train" else place


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
