"""What the change did: two runs side by side, from the recipe down to the token."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentrecipes.analysis.divergence import first_divergence
from agentrecipes.analysis.intervals import metric_differences, reward_differences
from agentrecipes.analysis.stored import open_run
from agentrecipes.tracking.paths import leaves


def diff(a: Path, b: Path) -> dict[str, Any]:
    """How two run folders differ; what is in neither list is equal.

    Keys: a, b (name and status), recipe [{path, a, b}] (null where a recipe has no such path), lock
    [{name, a, b}], first_divergence (see divergence.py) or None, metrics and rewards (see
    intervals.py).

    Raises:
        AgentRecipesError: one of them cannot be read.
    """
    one, other = open_run(a), open_run(b)
    stages = tuple(dict.fromkeys([*one.stages, *other.stages]))
    inputs = [dict(run.lock.get("inputs") or {}) for run in (one, other)]
    for each in inputs:
        each.pop("recipe", None)  # its fields have just been compared one by one
    paths = [leaves(run.recipe) for run in (one, other)]
    return {
        "a": {"run": one.name, "status": one.status},
        "b": {"run": other.name, "status": other.status},
        "recipe": _differing(*paths, name="path"),
        "lock": _differing(*inputs, name="name"),
        "first_divergence": first_divergence(a, b, stages),
        "metrics": metric_differences(a, b, stages),
        "rewards": reward_differences(a, b, stages),
    }


def _differing(a: Mapping[str, Any], b: Mapping[str, Any], *, name: str) -> list[dict[str, Any]]:
    """Where two mappings differ, in the order of the first and then of the second."""
    return [
        {name: key, "a": a.get(key), "b": b.get(key)}
        for key in dict.fromkeys([*a, *b])
        if a.get(key) != b.get(key)
    ]
