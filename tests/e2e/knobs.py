"""Small runs with one thing changed, and what their tables say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file
from small import RECIPE, SMALL, experiment, small
from test_resume import rows

from agentrecipes.experiment import run
from agentrecipes.recipe.load import load

BASIS = [
    "rewards=[spread]",
    "stages.imitate.steps=2",
    "stages.reinforce.iterations=2",
    "stages.reinforce.optimizer.warmup_steps=0",
    "stages.reinforce.optimizer.decay=constant",
    "evaluation.every=0",
    "evaluation.tasks=2",
    "tripwires.dead_type.tasks=2",
]


def ran(folder: Path, *overrides: str) -> dict[str, Any]:
    """The summary of a finished run in `folder`."""
    summary = run(experiment(small(*BASIS, *overrides), folder))
    assert summary["status"] == "finished"
    assert summary["lost"] == []
    return summary


def other_model(model: str, *overrides: str) -> list[str]:
    """The words of a small run with another model than the embedded one."""
    words = [word for word in SMALL if not word.startswith("model.")]
    return [*words, *BASIS, f"model={model}", *overrides]


def with_model(folder: Path, model: str, *overrides: str) -> dict[str, Any]:
    """The summary of a finished run with that model."""
    summary = run(experiment(load(RECIPE, other_model(model, *overrides)), folder))
    assert (summary["status"], summary["lost"]) == ("finished", [])
    return summary


def algorithm(fields: str) -> str:
    return f"stages.reinforce.algorithm={{{fields}}}"


def curve(folder: Path, name: str, stage: str = "reinforce") -> list[float]:
    """A metric's values by iteration."""
    found = [
        row
        for file in (folder / "tables" / "metrics").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
        if (row["stage"], row["name"]) == (stage, name)
    ]
    return [row["value"] for row in sorted(found, key=lambda row: row["iteration"])]


def trained_rows(folder: Path) -> list[dict[str, Any]]:
    return [row for row in rows(folder, "trajectories") if row["split"] == "train"]


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model" / "model.safetensors")
