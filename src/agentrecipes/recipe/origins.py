"""Who wrote each value of a resolved recipe, and which overrides wrote nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentrecipes.errors import Problem
from agentrecipes.recipe.overrides import LABEL, Override
from agentrecipes.recipe.positions import Loc, Node, Place, dotted, lookup
from agentrecipes.schedules import is_schedule


def labels(data: Mapping[str, Any], own: Node, stages: Mapping[str, Node]) -> dict[str, str]:
    """Dotted path → ``rag_r1.yaml:12``, ``command line``, ``brought by dapo`` or ``default``."""
    found: dict[str, str] = {}
    for key, value in data.items():
        if key != "stages":
            found |= {dotted(loc): _label(own, loc) for loc in _ends(value, (key,))}
    for stage in data["stages"]:
        tree = stages[stage["name"]]
        for key, value in stage.items():
            for loc in _ends(value, (key,)):
                label = tree.place.label if loc == ("name",) else _label(tree, loc)
                found[dotted(("stages", stage["name"], *loc))] = label
    return found


def _ends(value: Any, loc: Loc) -> Iterator[Loc]:
    """Paths of what is told as one: scalars, schedules, lists of scalars, empty mappings."""
    if isinstance(value, Mapping) and value and not is_schedule(value):
        for key, item in value.items():
            yield from _ends(item, (*loc, key))
    elif isinstance(value, list) and any(isinstance(item, Mapping | list) for item in value):
        for index, item in enumerate(value):
            yield from _ends(item, (*loc, index))
    else:
        yield loc


def _label(tree: Node, loc: Loc) -> str:
    node = lookup(tree, loc)
    if node is None:
        return "default"
    return LABEL if node.place.typed else node.place.label


def unused(
    overrides: Sequence[Override], trees: Sequence[Node], known: Sequence[Problem]
) -> Iterator[Problem]:
    """A warning for each override that reaches no stage, because all write that field."""
    used = {id(place) for tree in trees for place in _places(tree)}
    for override in overrides:
        told = any(override.text in problem.message for problem in known)
        if id(override.node.place) in used or told:
            continue
        path, others = dotted(override.loc), [o.loc for o in overrides if o is not override]
        why, hint = "no stage uses it", "Leave it out."
        if any(loc == override.loc[: len(loc)] for loc in others):
            why = "another override replaces it"
        elif override.loc[0] != "stages":
            why, hint = "the stages have values of their own", f"Write `stages.NAME.{path}=…`."
        found = f"the override {override.text!r} has no effect: {why}"
        yield Problem("no_effect", path, found, hint, severity="warning")


def _places(node: Node) -> Iterator[Place]:
    """The places of all values, but not of mappings, which are made of their entries."""
    if isinstance(node.value, dict) and node.value:
        for item in node.value.values():
            yield from _places(item)
        return
    yield node.place
    if isinstance(node.value, list):
        for item in node.value:
            yield from _places(item)
