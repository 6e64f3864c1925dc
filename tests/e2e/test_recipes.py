"""Every recipe starts, by every profile that needs no model on disk, and ends with a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from small import SMALL, experiment
from transformers import AutoModelForCausalLM

from agentrecipes.experiment import run
from agentrecipes.recipe.load import Recipe, load

FOLDER = Path(__file__).parents[2] / "recipes"


def starts() -> list[tuple[Path, str | None]]:
    """Each recipe and profile whose model is the tiny one."""
    found: list[tuple[Path, str | None]] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        profiles = [None, *(yaml.safe_load(path.read_text()).get("profiles") or {})]
        found += [(path, p) for p in profiles if tiny(load(path, profile=p))]
    return found


def tiny(recipe: Recipe) -> bool:
    return recipe.fields.model.part_name == "tiny"


def test_every_recipe_has_a_form_that_runs_anywhere():
    assert {path for path, _ in starts()} == set(FOLDER.glob("*.yaml"))


def case(path: Path, profile: str | None) -> Any:
    """A case, marked by the extras that the recipe requires."""
    marks = [getattr(pytest.mark, extra) for extra in load(path, profile=profile).fields.requires]
    return pytest.param(path, profile, marks=marks, id=f"{path.stem}-{profile}")


@pytest.mark.parametrize(("path", "profile"), [case(*start) for start in starts()])
def test_a_recipe_starts_and_ends_with_a_model(tmp_path, path, profile):
    recipe = load(path, SMALL, profile=profile)
    summary = run(experiment(recipe, tmp_path / "run"))
    assert summary["status"] == "finished"
    assert [stage["name"] for stage in summary["stages"]] == [s.name for s in recipe.stages]
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["profile"] == profile
    assert {row["split"] for row in summary["evaluations"]} == {"dev", "test"}
    AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model")
