"""The default recipe, made small: the whole path in a few seconds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentrecipes.compile import Experiment, RunPlace, compile_recipe
from agentrecipes.components import add_folder
from agentrecipes.experiment import run
from agentrecipes.recipe.load import Recipe, load

add_folder(Path(__file__).parent / "parts")
RECIPE = Path(__file__).parents[2] / "recipes" / "rag_r1.yaml"
SMALL = [
    "tracking.backend=none",
    "model.layers=1",
    "rollout.tasks=4",
    "rollout.group_size=4",
    "rollout.tokens=128",
    "rollout.tokens_per_turn=24",
    "evaluation.tasks=6",
    "evaluation.every=2",
    "tripwires.no_signal.action=warn",
    "tripwires.dead_type.action=warn",
    "stages.imitate.steps=6",
    "stages.imitate.demonstrations.count=40",
    "stages.imitate.trainer.checkpoint_every=4",
    "stages.imitate.trainer.rows_per_step=8",
    "stages.reinforce.iterations=3",
    "stages.reinforce.trainer.checkpoint_every=1",
]


def small(*overrides: str) -> Recipe:
    return load(RECIPE, [*SMALL, *overrides])


def experiment(recipe: Recipe, folder: Path) -> Experiment:
    return compile_recipe(recipe, RunPlace(folder.parent, folder))


def trained(folder: Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """The summary of a small run in `folder`."""
    return run(experiment(small(*overrides), folder))
