"""The run's Parquet tables: every trajectory, turn, metric and evaluation.

One file per table and place, written under a temporary name and then renamed; the same rows give
the same bytes. Trouble with writing never stops a run: it is listed in ``lost``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from agentrecipes.records import EvaluationRow as EvaluationRow
from agentrecipes.records import Place as Place
from agentrecipes.records import Scored
from agentrecipes.tracking import compaction, manifest, rows
from agentrecipes.tracking.columns import schema
from agentrecipes.tracking.manifest import field
from agentrecipes.tracking.paths import flatten


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One figure: ``MetricRow(10, 40, "reward/exact_match", 0.5, 12.5)``."""

    iteration: int
    step: int  # optimizer steps since the stage began
    name: str
    value: float
    seconds: float  # since the run began


class Tables:
    """Writes the tables of one run into ``<run dir>/tables``. One writer per run.

    Without a folder it writes nothing: a run on several devices has one rank that writes.
    """

    def __init__(self, folder: Path | None, run: str) -> None:
        self.lost: list[str] = []
        self._folder = folder
        self._run = run

    def trajectories(
        self,
        scored: Sequence[Scored],
        place: Place,
        *,
        advantage_means: Sequence[float | None] | None = None,
        advantages: Sequence[rows.TokenAdvantages] | None = None,
    ) -> None:
        """Write the trajectories, turns and judgements of `place`; they replace what stood there.

        Where no judge was asked there is no file of judgements.
        """
        means = advantage_means if advantage_means is not None else [None] * len(scored)
        name = _file(place.stage, f"{place.iteration:06d}", place.split, place.mode)
        records = zip(scored, means, strict=True)
        self._write(
            "trajectories",
            name,
            [rows.trajectory(one, self._run, place, advantage_mean=mean) for one, mean in records],
        )
        told = advantages if advantages is not None else [{}] * len(scored)
        turns = (
            row
            for one, own in zip(scored, told, strict=True)
            for row in rows.turns(one, self._run, place, advantages=own)
        )
        self._write("turns", name, list(turns))
        if judged := [row for one in scored for row in rows.judgements(one, self._run, place)]:
            self._write("judgements", name, judged)

    def metrics(self, stage: str, rows: Sequence[MetricRow], *, name: str) -> None:
        """Write one file of metrics; the same stage and name replace it."""
        self._write(
            "metrics",
            _file(stage, name),
            [
                {
                    "run": self._run,
                    "stage": stage,
                    "iteration": row.iteration,
                    "step": row.step,
                    "name": row.name,
                    "value": row.value,
                    "seconds": row.seconds,
                }
                for row in rows
            ],
        )

    def evaluations(self, rows: Sequence[EvaluationRow]) -> None:
        """Write one file per stage, iteration, split and mode among `rows`."""
        files: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            place = (row.stage, f"{row.iteration:06d}", row.split, row.mode)
            beside = [one.metric for one in rows if _place(one) == _place(row)]
            files.setdefault(_file(*place, _joined(beside)), []).append(self._evaluation(row))
        for name, records in files.items():
            self._write("evaluations", name, records)

    def run(self, summary: Mapping[str, Any], recipe: Mapping[str, Any]) -> None:
        """Write the run's row of ``runs``, and its ``recipes`` rows, one per dotted path.

        Call it when the run starts (status "running") and again with the final summary.
        """
        stages = summary.get("stages") or recipe.get("stages") or []
        row = {
            "run": self._run,
            "recipe": recipe.get("name"),
            **{
                key: summary.get(key)
                for key in ("status", "recipe_hash", "seed", "profile", "wall_seconds", "dir")
            },
            "algorithm": _algorithm(stages[-1]) if stages else None,
            "stages": _json(summary.get("stages", [])),
            "artifacts": _json(summary.get("artifacts", {})),
        }
        self._write("runs", "run.parquet", [row])
        paths = flatten(recipe).items()
        records = [{"run": self._run, "path": path, "value": value} for path, value in paths]
        self._write("recipes", "recipe.parquet", records)

    def compact(self, stage: str) -> None:
        """Make one file per table of the stage's small ones; readers always see every row once."""
        for table in ("metrics", "evaluations", "trajectories", "turns", "judgements"):
            if self._folder is None:
                return
            try:
                compaction.compact(self._folder / table, stage, schema=schema(table))
            except _trouble() as error:
                self.lost.append(f"{table}: the files of stage {stage!r} stay uncompacted: {error}")

    def forget(self, stage: str, done: int) -> None:
        """Drop rows of the stage that are later than `done` iterations, or steps; -1: all of them.

        A resumed run makes them again, and not always in files of the same names.
        """

        for table in ("metrics", "evaluations", "trajectories", "turns", "judgements"):
            if self._folder is None:
                return
            gone = partial(_gone, done=done, evaluated=table == "evaluations")
            try:
                compaction.forget(self._folder / table, stage, schema=schema(table), gone=gone)
            except _trouble() as error:
                self.lost.append(f"{table}: old rows of stage {stage!r} stay: {error}")

    def told(self, stage: str) -> list[MetricRow]:
        """The stage's metrics as they are stored, by step; none where they cannot be read."""
        import pyarrow.parquet as pq

        names = ("iteration", "step", "name", "value", "seconds")
        found: list[MetricRow] = []
        if self._folder is None:
            return found
        try:
            for path in manifest.current(self._folder / "metrics"):
                rows = pq.read_table(path, filters=[("stage", "=", stage)]).to_pylist()
                found += [MetricRow(*(row[name] for name in names)) for row in rows]
        except _trouble() as error:
            self.lost.append(f"metrics of stage {stage!r} cannot be read: {error}")
        return sorted(found, key=lambda row: row.step)

    def _evaluation(self, row: EvaluationRow) -> dict[str, Any]:
        return {
            "run": self._run,
            "stage": row.stage,
            "iteration": row.iteration,
            "split": row.split,
            "mode": row.mode,
            "metric": row.metric,
            "value": row.value,
            "tasks": row.tasks,
            "standard_error": row.standard_error,
            "by": list(row.by.items()),
            "rounds_mean": row.rounds_mean,
        }

    def _write(self, table: str, name: str, records: Sequence[Mapping[str, Any]]) -> None:
        import pyarrow as pa

        if self._folder is None:
            return
        try:
            data = pa.Table.from_pylist(list(records), schema=schema(table))
            compaction.place(data, self._folder / table / name)
        except _trouble() as error:
            self.lost.append(f"{table}/{name}: {len(records)} rows not written: {error}")


def _gone(fields: Sequence[str], *, done: int, evaluated: bool) -> bool:
    """Whether a file, by the fields of its name, is later than `done`.

    What was measured at `done` itself was there before the checkpoint.
    """
    measured = evaluated or (len(fields) > 1 and fields[1] != "train")
    return int(fields[0]) > done if measured else int(fields[0]) >= done


def _trouble() -> tuple[type[Exception], ...]:
    """What a full disk, a missing folder or a value of the wrong type raises."""
    import pyarrow as pa

    return (OSError, pa.ArrowException)


def _file(*fields: str) -> str:
    return ".".join(field(text) for text in fields) + ".parquet"


def _place(row: EvaluationRow) -> Place:
    return Place(row.stage, row.iteration, row.split, row.mode)


def _joined(metrics: Iterable[str]) -> str:
    """Metric names as one field: rows of other metrics at the same place get another file."""
    text = ",".join(metrics)
    return text if len(text) <= 80 else hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _algorithm(stage: Mapping[str, Any]) -> str | None:
    algorithm = stage.get("algorithm")
    name = algorithm.get("name") if isinstance(algorithm, Mapping) else algorithm
    return None if name is None else str(name)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=os.fspath)
