"""A run folder as plain values: what is there, and a note for what cannot be read."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.tracking import manifest

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]
Curve = Sequence[tuple[int, float]]
"""(iteration, value), iterations ascending."""


@dataclass(frozen=True, slots=True)
class RunData:
    """All of a run but its trajectories; empty where nothing was written."""

    folder: Path
    name: str
    summary: Row
    recipe: Mapping[str, str]  # dotted path → value as text
    origin: Mapping[str, str]  # dotted path → who wrote it; empty where the lock does not say
    evaluations: Sequence[Row]
    metrics: Mapping[tuple[str, str], Curve]  # (stage, name)
    notes: list[str] = field(default_factory=list)  # what could not be read, and why


def read_run(folder: Path) -> RunData:
    """What a run has told so far. Never raises: damage becomes a note."""
    notes: list[str] = []
    recipe = rows(folder, "recipes", ["path", "value"], notes=notes)
    lock = _json(folder / "recipe.lock", notes)
    summary = _json(folder / "summary.json", notes)
    known = rows(
        folder, "runs", ["recipe", "status", "seed", "recipe_hash", "profile"], notes=notes
    )
    return RunData(
        folder=folder,
        name=folder.resolve().name,
        summary=summary or (known[0] if known else {}),
        recipe={row["path"]: row["value"] or "" for row in recipe if row["path"]},
        origin=_origin(lock.get("origin")),
        evaluations=_evaluations(rows(folder, "evaluations", EVALUATION, notes=notes)),
        metrics=_metrics(folder, notes),
        notes=notes,
    )


EVALUATION = [
    *("stage", "iteration", "split", "mode", "metric", "value"),
    *("tasks", "standard_error", "by", "rounds_mean"),
]


def rows(
    folder: Path, table: str, columns: Sequence[str], *, notes: list[str]
) -> list[dict[str, Any]]:
    """The rows of one of the run's tables, with those of `columns` that it has."""
    return [row for part in parts(folder, table, columns, notes=notes) for row in part.to_pylist()]


def parts(
    folder: Path,
    table: str,
    columns: Sequence[str],
    *,
    where: Any = None,
    notes: list[str],
) -> Iterator[pa.Table]:
    """The table's files, one after another; `where` is an Arrow expression."""
    import pyarrow as pa
    import pyarrow.dataset as ds

    try:
        files = manifest.current(folder / "tables" / table)
    except (OSError, ValueError) as error:
        notes.append(f"{table}: {_short(error)}")
        return
    for path in files:
        try:
            data = ds.dataset(path)
            found = [name for name in columns if name in data.schema.names]
            yield data.to_table(columns=found, filter=where)
        except FileNotFoundError:
            continue  # a compaction ended meanwhile
        except (OSError, ValueError, pa.ArrowException) as error:
            notes.append(f"{table}/{Path(path).name}: {_short(error)}")


def _metrics(folder: Path, notes: list[str]) -> dict[tuple[str, str], Curve]:
    found: dict[tuple[str, str], dict[int, float]] = {}
    for part in parts(folder, "metrics", ["stage", "name", "iteration", "value"], notes=notes):
        names = ("stage", "name", "iteration", "value")
        if any(name not in part.column_names for name in names):
            continue
        columns = (part[name].to_pylist() for name in names)
        for stage, name, iteration, value in zip(*columns, strict=True):
            if None not in (stage, name, iteration) and finite(value):
                found.setdefault((stage, name), {})[iteration] = value
    return {key: sorted(values.items()) for key, values in found.items()}


def _evaluations(found: Sequence[dict[str, Any]]) -> list[Row]:
    """Whole rows alone, one for each place and metric, in the order of the iterations."""
    whole = [
        {**row, "by": dict(row.get("by") or ())}
        for row in found
        if None not in (row.get("stage"), row.get("iteration"), row.get("metric"))
        and finite(row.get("value"))
    ]
    keyed = {
        (row["stage"], row["iteration"], row.get("split"), row.get("mode"), row["metric"]): row
        for row in whole
    }
    return sorted(keyed.values(), key=lambda row: int(row["iteration"]))


def finite(value: object) -> bool:
    """Whether it is a number that can be drawn."""
    return isinstance(value, int | float) and math.isfinite(value)


def _json(path: Path, notes: list[str]) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        notes.append(f"{path.name}: {_short(error)}")
        return {}
    return data if isinstance(data, dict) else {}


def _origin(found: object) -> dict[str, str]:
    """Paths in the words of ``tables/recipes``: ``rewards[0].name`` is ``rewards.0.name``."""
    if not isinstance(found, dict):
        return {}
    return {str(path).replace("[", ".").replace("]", ""): str(who) for path, who in found.items()}


def _short(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
