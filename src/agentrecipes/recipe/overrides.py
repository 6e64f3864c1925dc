"""``key.path=value`` from the command line, as a layer over the recipe."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import STAGE, Draft, top_shape
from agentrecipes.recipe.merge import merge
from agentrecipes.recipe.positions import Loc, Node, Place, dotted, moved, split, written
from agentrecipes.recipe.shape import Shape
from agentrecipes.recipe.source import ENVIRONMENT

LABEL = "command line"


@dataclass(frozen=True, slots=True)
class Override:
    """One override: where it points, and its value, all of it at one place of its own."""

    text: str
    loc: Loc
    node: Node


def lay_overrides(draft: Draft, texts: tuple[str, ...], *, layer: int) -> list[Override]:
    """Lay all overrides over the draft as one layer: their order matters for equal keys only.

    Those with a list index come after the others. What is wrong with one is noted in the draft.
    """
    read, whole = [], None
    for text in texts:
        try:
            override = _read(text, layer)
        except ValueError as error:
            _note(draft, text, error)
            continue
        read.append(override)
        if not any(isinstance(step, int) for step in override.loc):
            nested = _nest(draft, override.loc, override.node)
            whole = nested if whole is None else _joined(whole, nested)
    if whole is not None:
        draft.lay(whole)
    for override in read:
        if any(isinstance(step, int) for step in override.loc):
            try:
                draft.lay(_nest(draft, override.loc, override.node))
            except ValueError as error:
                _note(draft, override.text, error)
    return read


def _note(draft: Draft, text: str, error: ValueError) -> None:
    hint = "Write `key.path=value`, for example `rollout.tasks=4`."
    found = f"{error} (in the override {text!r})"
    draft.problems.append(Problem("bad_override", text.partition("=")[0], found, hint))


def _joined(one: Node, other: Node) -> Node:
    """Two overlays as one, by the rules of the fields they reach."""
    entries = dict(one.items)
    for key, node in other.items.items():
        if key not in entries:
            entries[key] = node
        elif key == "stages":
            stages = dict(entries[key].items)
            for name, stage in node.items.items():
                stages[name] = merge(stages[name], stage, STAGE) if name in stages else stage
            entries[key] = replace(entries[key], value=stages)
        else:
            entries[key] = merge(entries[key], node, top_shape(key))
    return replace(one, value=entries)


def _read(text: str, layer: int) -> Override:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ValueError("the override has no `=`" if not equals else "the override has no key")
    loc = split(key.strip())
    place = Place(f"the override {text!r}", folder=Path.cwd(), typed=True, layer=layer)
    return Override(text, loc, written(_value(value), place, loc))


def _value(text: str) -> Any:
    """The value as YAML, by OmegaConf's rules: ``1e-5`` is a number."""
    if "${" in ENVIRONMENT.sub("", text):
        raise ValueError("only ${oc.env:NAME} is read")
    try:
        read = OmegaConf.to_container(OmegaConf.from_dotlist([f"value={text}"]))
    except (OmegaConfBaseException, yaml.YAMLError, RecursionError):
        raise ValueError("the value is no YAML") from None
    assert isinstance(read, dict)
    return read["value"]


def _nest(draft: Draft, loc: Loc, node: Node) -> Node:
    """Mappings around `node`, so that it stands at `loc`; an index changes one entry of a list."""
    place = node.place
    for cut in range(len(loc) - 1, -1, -1):
        step, before = loc[cut], loc[:cut]
        if isinstance(step, int):
            node = _replaced(draft, (*before, step), node)
        else:
            node = Node({step: node}, place, before, place)
    return node


def _replaced(draft: Draft, entry: Loc, node: Node) -> Node:
    """The list that holds `entry`, with `node` laid over that entry."""
    loc, index = entry[:-1], int(entry[-1])
    base = draft.at(loc) if loc else None
    entries = list(base.value) if base is not None and isinstance(base.value, list) else None
    if base is None or entries is None:
        raise ValueError(f"{dotted(loc)} holds no list")
    if index >= len(entries):
        raise ValueError(f"{dotted(loc)} has {len(entries)} entries, counted from 0")
    shape = _shape_at(loc)
    entries[index] = merge(entries[index], node, shape.items if shape else None)
    return Node(
        [moved(entry, (*loc, i)) for i, entry in enumerate(entries)], node.place, loc, node.key
    )


def _shape_at(loc: Loc) -> Shape | None:
    steps = loc[2:] if loc[0] == "stages" else loc
    shape = top_shape(str(steps[0])) if steps else None
    for step in steps[1:]:
        if shape is None:
            return None
        shape = shape.items if isinstance(step, int) else shape.entry(step, None)
    return shape
