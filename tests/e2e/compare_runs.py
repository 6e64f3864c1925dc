"""The first difference between two runs of one recipe, times and names apart; exit code 1 for one.

python tests/e2e/compare_runs.py RUN OTHER
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file

from agentrecipes.analysis.divergence import first_divergence
from agentrecipes.tracking import manifest
from agentrecipes.training import checkpoints

TIMES = {"seconds", "engine_seconds", "tool_seconds", "run", "wall_seconds", "dir", "artifacts"}
TABLES = ("metrics", "evaluations", "trajectories", "turns")


def first_difference(run: Path, other: Path) -> str | None:
    """Where the two part, in the order in which a run makes things; None where nothing differs."""
    return next(differences(run, other), None)


def differences(run: Path, other: Path) -> Iterator[str]:
    """Tokens first, then every table, the summary, the last checkpoint and the model."""
    told = [json.loads((each / "summary.json").read_text()) for each in (run, other)]
    stages = [stage["name"] for stage in told[0]["stages"]]
    parted = first_divergence(run, other, stages)
    if parted is not None:
        yield f"first token: {parted}"
    for table in TABLES:
        yield from unequal(rows(run, table), rows(other, table), table)
    yield from unequal(*told, "summary.json")
    states = [checkpoints.newest(each / "checkpoints") for each in (run, other)]
    yield from unequal(*(None if each is None else each.state for each in states), "checkpoint")
    models = [load_file(each / "model" / "model.safetensors") for each in (run, other)]
    yield from unequal(*models, "model")
    halves = [path for path in other.rglob(".*") if path.name.endswith((".tmp", ".running"))]
    if halves:
        yield f"left behind: {halves[0]}"


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    """A table's rows as readers see them, without times, in a fixed order."""
    found = [
        row
        for path in manifest.current(folder / "tables" / table)
        for row in pq.read_table(path).to_pylist()
    ]
    kept = [row for row in found if not str(row.get("name", "")).startswith("time/")]
    plain = [{key: value for key, value in row.items() if key not in TIMES} for row in kept]
    return sorted(plain, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def unequal(one: Any, other: Any, place: str) -> Iterator[str]:
    """Every place below `place` where two values differ."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in dict.fromkeys([*one, *other]):
            if key not in TIMES:
                yield from unequal(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        if not torch.equal(one, other):
            yield f"{place}: {int((one != other).sum())} of {one.numel()} numbers differ"
    elif is_list(one) and is_list(other):
        for number, (left, right) in enumerate(zip(one, other, strict=False)):
            yield from unequal(left, right, f"{place}[{number}]")
        if len(one) != len(other):
            yield f"{place}: {len(one)} against {len(other)}"
    elif not (one == other or (one != one and other != other)):  # NaN is like NaN
        yield f"{place}: {one!r} against {other!r}"


def is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes)


if __name__ == "__main__":
    found = first_difference(Path(sys.argv[1]), Path(sys.argv[2]))
    print(found or "equal")
    sys.exit(found is not None)
