"""Laying one tree over another: mappings merge key by key, lists replace, parts replace by name."""

from __future__ import annotations

from agentrecipes.recipe.positions import Node
from agentrecipes.recipe.shape import Shape


def merge(base: Node, over: Node, shape: Shape | None) -> Node:
    """`over` laid over `base`; one that changes a part's ``name`` replaces that part whole."""
    if shape is not None and shape.is_part:
        base, over = as_part(base), as_part(over)
    if not (isinstance(base.value, dict) and isinstance(over.value, dict)):
        return over
    if "schedule" in over.value:
        return over
    name = over.name or base.name
    if shape is not None and shape.is_part and base.name not in (None, name):
        return over
    entries = dict(base.value)
    for key, node in over.value.items():
        child = shape.entry(key, name) if shape is not None else None
        entries[key] = merge(entries[key], node, child) if key in entries else node
    kept = over if base.place.file is None else base  # what a part brought has no place in a file
    return Node(entries, kept.place, kept.path, kept.key)


def as_part(node: Node) -> Node:
    """A part's short form, ``ppo``, as its long one, ``{name: ppo}``."""
    if not isinstance(node.value, str):
        return node
    name = Node(node.value, node.place, (*node.path, "name"), node.key)
    return Node({"name": name}, node.place, node.path, node.key)


def spell_out(node: Node, shape: Shape | None) -> Node:
    """The tree with every part in its long form."""
    if shape is not None and shape.is_part:
        node = as_part(node)
    if isinstance(node.value, dict) and "schedule" not in node.value:
        entries = {
            key: spell_out(item, shape.entry(key, node.name) if shape else None)
            for key, item in node.value.items()
        }
        return Node(entries, node.place, node.path, node.key)
    if isinstance(node.value, list) and shape is not None and shape.items is not None:
        items = [spell_out(item, shape.items) for item in node.value]
        return Node(items, node.place, node.path, node.key)
    return node
