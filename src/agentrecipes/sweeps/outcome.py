"""What a study has come to: every trial, the best, and where no objective can gain for free."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from agentrecipes.sweeps.load import Sweep
from agentrecipes.sweeps.space import label

WORDS = {
    TrialState.COMPLETE: "finished",
    TrialState.PRUNED: "pruned",
    TrialState.FAIL: "failed",
    TrialState.RUNNING: "running",
}


def outcome(sweep: Sweep, trials: Sequence[FrozenTrial]) -> dict[str, Any]:
    """The JSON of ``sweep``: ``study, trials, best: {number, value, params, run}``, and more."""
    table = [_row(sweep, trial) for trial in trials]
    done = [row for row in table if row["state"] == "finished"]
    directions = [objective.direction for objective in sweep.fields.objective]
    front = [row for row in done if not any(_beats(o, row, directions) for o in done)]
    ordered = sorted(front, key=lambda row: _gain(row["values"][0], directions[0]), reverse=True)
    over = [row for row in table if row["state"] != "running"]
    counts = {
        word: sum(row["state"] == word for row in table) for word in dict.fromkeys(WORDS.values())
    }
    return {
        "study": sweep.name,
        "trials": len(over),
        **counts,
        "best": ordered[0] if ordered else None,
        "front": ordered if len(directions) > 1 else [],
        "objective": [objective.dump() for objective in sweep.fields.objective],
        "table": table,
    }


def _row(sweep: Sweep, trial: FrozenTrial) -> dict[str, Any]:
    runs = trial.user_attrs.get("runs", [])
    complete = trial.state == TrialState.COMPLETE
    values = list(trial.values or ()) if complete else []
    return {
        "number": trial.number,
        "state": WORDS.get(trial.state, "waiting"),
        "value": values[0] if values else None,
        "values": values,
        "params": {path: _value(sweep, path, value) for path, value in trial.params.items()},
        "run": runs[0] if runs else None,
        "runs": runs,
        "curve": sorted(trial.intermediate_values.items()),
        "tries": trial.user_attrs.get("tries", 0),
        "reason": trial.user_attrs.get("reason"),
    }


def _value(sweep: Sweep, path: str, value: Any) -> Any:
    """A value as the recipe has it: Optuna holds a mapping as text."""
    choices = sweep.space[path].choices
    return next((choice for choice in choices if label(choice) == value), value)


def _gain(value: float, direction: str) -> float:
    return value if direction == "maximize" else -value


def _beats(one: Mapping[str, Any], two: Mapping[str, Any], directions: Sequence[str]) -> bool:
    """Whether a trial is nowhere worse than another, and somewhere better."""
    pairs = [
        (_gain(a, way), _gain(b, way))
        for a, b, way in zip(one["values"], two["values"], directions, strict=True)
    ]
    return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)
