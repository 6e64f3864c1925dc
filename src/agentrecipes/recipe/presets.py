"""``rewards: search_r1_v03``: a name in place of a list is a fragment that the package ships."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import agentrecipes
from agentrecipes.components import names, suggest
from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import problem_at
from agentrecipes.recipe.positions import Node, moved
from agentrecipes.recipe.source import read

FOLDER = Path(agentrecipes.__file__).parent / "rewards"


def with_preset(tree: Node) -> tuple[Node, list[Problem]]:
    """The stage with the rewards of its preset; a preset nobody ships is a problem."""
    node = tree.items.get("rewards")
    if node is None or not isinstance(node.value, str):
        return tree, []
    if node.value not in presets():
        hint = suggest(node.value, presets())
        if node.value in names("reward"):
            hint = f"Write a list: `rewards: [{node.value}]`."
        found = f"no preset of rewards is called {node.value!r}"
        problem = Problem("unknown_preset", "", found, hint)
        return tree, [problem_at(node.place, node.path, problem)]
    fragment = read(FOLDER / f"{node.value}.yaml", f"preset {node.value}")
    rewards = moved(fragment.items["rewards"], node.path)
    return replace(tree, value={**tree.value, "rewards": rewards}), []


def presets() -> list[str]:
    """The names of the shipped fragments."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))
