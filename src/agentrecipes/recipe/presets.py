"""``rewards: search_r1_v03``: a name in place of a list is a fragment that the package ships.

``rewards: {name: atom_searcher, judge: …, over: 500}`` says besides who judges, and over how many
iterations its schedules go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import agentrecipes
from agentrecipes.components import names, suggest
from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import problem_at
from agentrecipes.recipe.positions import Node, moved
from agentrecipes.recipe.source import read

FOLDER = Path(agentrecipes.__file__).parent / "rewards"
SETTINGS = ("judge", "over")  # of a preset; what it lacks cannot be set


def with_preset(tree: Node) -> tuple[Node, list[Problem]]:
    """The stage with the rewards of its preset; a preset nobody ships is a problem."""
    node = tree.items.get("rewards")
    if node is None or not isinstance(node.value, str | dict):
        return tree, []
    named = node.items.get("name", node) if isinstance(node.value, dict) else node
    if not isinstance(named.value, str):
        return tree, []
    name = named.value
    if name not in presets():
        is_reward = name in names("reward")
        if is_reward and named is not node:
            return tree, []  # a list was meant, and is asked for where the stage is built
        hint = f"Write a list: `rewards: [{name}]`." if is_reward else suggest(name, presets())
        problem = Problem("unknown_preset", "", f"no preset of rewards is called {name!r}", hint)
        return tree, [problem_at(named.place, node.path, problem)]
    fragment = read(FOLDER / f"{name}.yaml", f"preset {name}").items["rewards"]
    fragment, problems = _set(fragment, node)
    rewards = moved(fragment, node.path)
    return replace(tree, value={**tree.value, "rewards": rewards}), problems


def _set(fragment: Node, node: Node) -> tuple[Node, list[Problem]]:
    """The fragment with what is set beside its name; what it has no place for is a problem."""
    problems = []
    settings = {key: each for key, each in node.items.items() if key != "name"}
    for key, value in settings.items():
        if key not in SETTINGS:
            found = Problem(
                "unknown_key",
                "",
                f"no setting of a preset is called {key!r}",
                suggest(key, SETTINGS),
            )
        elif _has(fragment, key):
            fragment = _replaced(fragment, key, value)
            continue
        else:
            found = Problem("no_effect", "", f"{key} has no effect on this preset", "Leave it out.")
        problems.append(problem_at(value.key or value.place, value.path, found))
    return fragment, problems


def _has(node: Node, key: str) -> bool:
    return key in node.items or any(_has(each, key) for each in _inside(node))


def _replaced(node: Node, key: str, value: Node) -> Node:
    """The tree with every entry `key` replaced by `value`."""
    if isinstance(node.value, list):
        return replace(node, value=[_replaced(each, key, value) for each in node.value])
    if not isinstance(node.value, Mapping):
        return node
    return replace(
        node,
        value={
            own: moved(value, each.path) if own == key else _replaced(each, key, value)
            for own, each in node.value.items()
        },
    )


def _inside(node: Node) -> list[Node]:
    return node.value if isinstance(node.value, list) else list(node.items.values())


def presets() -> list[str]:
    """The names of the shipped fragments."""
    return sorted(file.stem for file in FOLDER.glob("*.yaml"))
