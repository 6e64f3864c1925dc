"""What two runs measured, and how sure their differences are: evaluations and reward parts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentrecipes.analysis.stored import read_table
from agentrecipes.tracking.report.seeds import NORMAL_975, T_975

T_975_OF_TWO = 12.706  # Student's t, 97.5 %, for one degree of freedom
Key = tuple[str, str, str]  # split, mode, metric
PLACE = ("stage", "iteration", "split", "mode")


def metric_differences(a: Path, b: Path, stages: Sequence[str]) -> list[dict[str, Any]]:
    """The last evaluation of each split, mode and metric in both runs, and their difference.

    ``interval`` is that of the difference at 95 %: paired by task where both runs were measured on
    the same tasks, else from both standard errors; null where neither can be said.

    Raises:
        AgentRecipesError: a table is damaged.
    """
    last = [_last_evaluations(folder, stages) for folder in (a, b)]
    tasks = [_by_task(folder, found) for folder, found in zip((a, b), last, strict=True)]
    told = []
    for key in dict.fromkeys([*last[0], *last[1]]):
        one, other = last[0].get(key, {}), last[1].get(key, {})
        x, y = one.get("value"), other.get("value")
        interval = None
        if x is not None and y is not None:
            own, others = tasks[0].get(key, {}), tasks[1].get(key, {})
            interval = paired(own, others) if own.keys() == others.keys() else None
            interval = interval or _unpaired(one, other)
        split, mode, metric = key
        told.append({"split": split, "mode": mode, "metric": metric, **compared(x, y, interval)})
    return told


def reward_differences(a: Path, b: Path, stages: Sequence[str]) -> list[dict[str, Any]]:
    """Each reward part's mean over the training trajectories, and ``total``, stage by stage.

    Only iterations that both runs have are compared; they are the pairs of the interval at 95 %.

    Raises:
        AgentRecipesError: a table is damaged.
    """
    curves = [_reward_curves(folder) for folder in (a, b)]
    rank = {stage: place for place, stage in enumerate(stages)}
    keys = dict.fromkeys([*curves[0], *curves[1]])
    told = []
    for stage, part in sorted(keys, key=lambda key: rank.get(key[0], len(rank))):
        one, other = (curve.get((stage, part), {}) for curve in curves)
        common = one.keys() & other.keys() if one and other else one.keys() | other.keys()
        x, y = (_mean([curve[n] for n in common if n in curve]) for curve in (one, other))
        interval = paired(one, other)
        row = {"stage": stage, "part": part, "iterations": len(common)}
        told.append({**row, **compared(x, y, interval)})
    return told


def compared(
    a: float | None, b: float | None, interval: tuple[float, float] | None
) -> dict[str, Any]:
    """The figures of one comparison; ``difference`` is b less a."""
    difference = None if a is None or b is None else b - a
    return {
        "a": a,
        "b": b,
        "difference": difference,
        "interval": None if difference is None or interval is None else list(interval),
    }


def paired(a: Mapping[Any, float], b: Mapping[Any, float]) -> tuple[float, float] | None:
    """The 95 % interval (Student's t) of the mean of b less a over the keys that both have."""
    differences = [b[key] - a[key] for key in a if key in b]
    count = len(differences)
    if count < 2:
        return None
    mean = math.fsum(differences) / count
    spread = math.sqrt(math.fsum((each - mean) ** 2 for each in differences) / (count - 1))
    t = (T_975_OF_TWO, *T_975)[count - 2] if count - 2 <= len(T_975) else NORMAL_975
    half = t * spread / math.sqrt(count)
    return mean - half, mean + half


def _unpaired(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[float, float] | None:
    own, others = one.get("standard_error"), other.get("standard_error")
    if own is None or others is None:
        return None
    half = NORMAL_975 * math.hypot(own, others)
    difference = other["value"] - one["value"]
    return difference - half, difference + half


def _last_evaluations(folder: Path, stages: Sequence[str]) -> dict[Key, Mapping[str, Any]]:
    rank = {stage: place for place, stage in enumerate(stages)}
    columns = (*PLACE, "metric", "value", "standard_error")
    rows = read_table(folder, "evaluations", columns).to_pylist()
    rows.sort(key=lambda row: (rank.get(row["stage"], len(rank)), row["iteration"]))
    return {(row["split"], row["mode"], row["metric"]): row for row in rows}


def _by_task(folder: Path, last: Mapping[Key, Mapping[str, Any]]) -> dict[Key, dict[str, float]]:
    """The mean of each task's attempts, of every evaluation in `last`."""
    wanted: dict[tuple[Any, ...], list[Key]] = {}
    for key, row in last.items():
        wanted.setdefault(tuple(row[name] for name in PLACE), []).append(key)
    found: dict[Key, dict[str, list[float]]] = {}
    rows = read_table(folder, "trajectories", (*PLACE, "task", "parts")).to_pylist()
    for row in rows:
        parts = dict(row["parts"] or ())
        for key in wanted.get(tuple(row[name] for name in PLACE), ()):
            value = parts.get(key[2])
            if value is not None:
                found.setdefault(key, {}).setdefault(row["task"], []).append(value)
    return {key: {task: _sure(own) for task, own in each.items()} for key, each in found.items()}


def _reward_curves(folder: Path) -> dict[tuple[str, str], dict[int, float]]:
    """(stage, part) → iteration → mean over its training trajectories that have the part."""
    columns = ("stage", "iteration", "split", "total", "parts")
    found: dict[tuple[str, str], dict[int, list[float]]] = {}
    for row in read_table(folder, "trajectories", columns, split="train").to_pylist():
        for part, value in [*(row["parts"] or ()), ("total", row["total"])]:
            own = found.setdefault((row["stage"], part), {})
            if value is not None and math.isfinite(value):
                own.setdefault(row["iteration"], []).append(value)
    return {
        key: {iteration: _sure(values) for iteration, values in each.items()}
        for key, each in found.items()
    }


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return _sure(known) if known else None


def _sure(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)
