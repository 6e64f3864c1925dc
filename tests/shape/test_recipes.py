"""Every recipe of the menu is valid, with each of its profiles."""

from __future__ import annotations

import re

import pytest
from tests.shape.source import ROOT

from agentrecipes.recipe.load import check

RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))


def profiles(path):
    """The profiles a recipe defines, by the two-space indent under ``profiles:``."""
    block = re.search(r"^profiles:\n((?:[ #].*\n|\n)+)", path.read_text(), re.MULTILINE)
    return re.findall(r"^  ([a-z0-9_\-]+):", block[1], re.MULTILINE) if block else []


CASES = [(path, profile) for path in RECIPES for profile in (None, *profiles(path))]


@pytest.mark.parametrize(
    ("path", "profile"), CASES, ids=[f"{path.stem}-{profile}" for path, profile in CASES]
)
def test_a_recipe_of_the_menu_is_valid(path, profile):
    recipe, problems = check(path, (), profile=profile)
    assert [str(problem) for problem in problems if problem.severity == "error"] == []
    assert recipe is not None


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_opens_with_what_it_is_and_its_command(path):
    head = path.read_text().split("\nname:")[0]
    assert head.startswith("#")
    assert f"agentrecipes run recipes/{path.name}" in head
