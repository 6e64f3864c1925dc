"""From a recipe to a tracker, and to what the tracker is told of the run."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.schema import Tracking
from agentrecipes.tracking.mlflow.tracker import MlflowTracker
from agentrecipes.tracking.protocol import DataInput, NullTracker, RunInfo, Tracker, Within

GIT_SECONDS = 5.0


def tracker(fields: Tracking, runs: Path) -> Tracker:
    """The tracker that the recipe names."""
    if fields.backend == "none":
        return NullTracker()
    return MlflowTracker(
        runs, uri=fields.uri, traces=fields.traces, registered_as=fields.registered_as
    )


def run_info(
    recipe: Recipe, folder: Path, lock: Mapping[str, Any], *, within: Within | None = None
) -> RunInfo:
    """What a tracker is told when the run in `folder` starts."""
    return RunInfo(
        run=folder.name,
        experiment=recipe.fields.tracking.experiment or recipe.name,
        recipe=recipe.data,
        recipe_file=folder / "recipe.yaml",
        recipe_hash=recipe.hash,
        seed=recipe.seed,
        profile=recipe.profile,
        git=_git(Path.cwd()),
        lock_hash=hashlib.sha256(json.dumps(lock["inputs"], sort_keys=True).encode()).hexdigest(),
        datasets=tuple(_inputs(recipe)),
        within=within or Within(),
    )


def _inputs(recipe: Recipe) -> list[DataInput]:
    """The data sets of the stages, each once."""
    found: dict[str, DataInput] = {}
    for stage in recipe.stages:
        dataset = getattr(stage.environment, "dataset", None)
        if dataset is None:
            continue
        text = json.dumps(dataset.dump(), sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        source = str(getattr(dataset, "path", dataset.part_name))
        tasks = len(dataset.tasks("train"))
        found[text] = DataInput(dataset.part_name, digest, source, "train", tasks)
    return list(found.values())


def _git(folder: Path) -> str:
    """The commit of the work tree that `folder` stands in, "-dirty" added; "" outside of one."""
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=40"]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=GIT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
