"""Values that remember where they were written.

A recipe is read into a tree of `Node`s; merging moves whole nodes, so that whatever survives still
knows its file, line and column, and whoever wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

Loc = tuple[str | int, ...]
"""A path of keys and list indices; stages by name: ``("stages", "reinforce", "rewards", 1)``."""


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """Where a value was written; ``label`` is what `show` prints: ``recipes/rag_r1.yaml:12``."""

    label: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    folder: Path | None = None  # where relative paths in the value start
    typed: bool = False  # the user typed it on the command line
    layer: int = 0  # from 0, the furthest file; later layers lie over earlier ones


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """A value with its place: a dict of nodes, a list of nodes, or a scalar."""

    value: Any
    place: Place
    path: Loc = ()  # where it was written, as on the command line
    key: Place | None = None  # of the key that leads here

    @property
    def items(self) -> Mapping[str, Node]:
        """The entries of a mapping; empty for anything else."""
        return self.value if isinstance(self.value, dict) else {}

    @property
    def name(self) -> str | None:
        """The value of the key ``name``, if it is a text."""
        node = self.items.get("name")
        return node.value if node is not None and isinstance(node.value, str) else None


def read_nodes(node: yaml.Node, value: Any, where: Callable[[yaml.Mark], Place]) -> Node:
    """The tree of a composed document, with values from `value`, which has the same shape."""
    return _read(node, value, where, path=())


def _read(node: yaml.Node, value: Any, where: Callable[[yaml.Mark], Place], *, path: Loc) -> Node:
    place = where(node.start_mark)
    if isinstance(node, yaml.MappingNode):
        _flatten(node)
        entries = {}
        for key, item in node.value:
            child = _read(item, value[key.value], where, path=(*path, key.value))
            entries[key.value] = replace(child, key=where(key.start_mark))
        return Node(entries, place, path)
    if isinstance(node, yaml.SequenceNode):
        pairs = enumerate(zip(node.value, value, strict=True))
        return Node([_read(n, v, where, path=(*path, i)) for i, (n, v) in pairs], place, path)
    return Node(value, place, path)


def _flatten(node: yaml.MappingNode) -> None:
    """Put what ``<<: *anchor`` brings into the mapping itself, as the loader of values does."""
    if any(key.tag == "tag:yaml.org,2002:merge" for key, _ in node.value):
        yaml.SafeLoader("").flatten_mapping(node)


def written(value: Any, place: Place, path: Loc = ()) -> Node:
    """A tree of plain values that all stand in one place."""
    if isinstance(value, Mapping):
        entries = {str(k): written(v, place, (*path, str(k))) for k, v in value.items()}
        return Node(entries, place, path, place)
    if isinstance(value, list | tuple):
        return Node(
            [written(v, place, (*path, i)) for i, v in enumerate(value)], place, path, place
        )
    return Node(value, place, path, place)


def plain(node: Node) -> Any:
    """The value without its places."""
    if isinstance(node.value, dict):
        return {key: plain(item) for key, item in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def moved(node: Node, path: Loc, change: Callable[[Place], Place] | None = None) -> Node:
    """The same tree under another path, with each place of a value as `change` makes it."""
    value = node.value
    if isinstance(value, dict):
        value = {key: moved(item, (*path, key), change) for key, item in value.items()}
    elif isinstance(value, list):
        value = [moved(item, (*path, i), change) for i, item in enumerate(value)]
    return Node(value, change(node.place) if change else node.place, path, node.key)


def lookup(node: Node, loc: Sequence[str | int]) -> Node | None:
    """The node at `loc` below `node`, or None."""
    for step in loc:
        found = _child(node, step)
        if found is None:
            return None
        node = found
    return node


def _child(node: Node, step: str | int) -> Node | None:
    if isinstance(step, str):
        return node.items.get(step)
    entries = node.value if isinstance(node.value, list) else []
    return entries[step] if 0 <= step < len(entries) else None


def put(node: Node, loc: Sequence[str | int], child: Node | None) -> Node:
    """A copy of the tree with `child` at `loc`, or without that entry if `child` is None."""
    step, rest = loc[0], loc[1:]
    value: Any = dict(node.value) if isinstance(node.value, dict) else list(node.value)
    if rest:
        value[step] = put(value[step], rest, child)
    elif child is None:
        del value[step]
    else:
        value[step] = child
    return replace(node, value=value)


def dotted(loc: Sequence[str | int]) -> str:
    """A path as people write it: ``stages.reinforce.rewards[1].name``."""
    text = ""
    for step in loc:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else str(step)
    return text


def split(path: str) -> Loc:
    """The reverse of `dotted`.

    Raises:
        ValueError: the path is malformed.
    """
    loc: list[str | int] = []
    for part in path.split("."):
        key, *indices = part.split("[")
        if not key and not (indices and not loc):
            raise ValueError(f"{path!r} has an empty key")
        if key:
            loc.append(key)
        for index in indices:
            if not (index.endswith("]") and index[:-1].isdigit()):
                raise ValueError(f"{path!r} has a malformed list index")
            loc.append(int(index[:-1]))
    return tuple(loc)
