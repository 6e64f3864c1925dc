"""Plain data as dotted paths, the way the command line writes them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def flatten(data: Any) -> dict[str, str]:
    """Dotted path → value as text: strings as they are, all else as JSON.

    Stages are addressed by their names, the items of any other list by their index:
    ``stages.reinforce.iterations``, ``rewards.0.name``. Empty mappings and lists are values.
    """
    return {path: _text(value) for path, value in leaves(data).items()}


def leaves(data: Any) -> dict[str, Any]:
    """Dotted path → value as it is, under the paths of `flatten`."""
    return {".".join(path): value for path, value in _leaves(data, ())}


def _leaves(data: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from _leaves(value, (*path, str(key)))
    elif isinstance(data, list | tuple) and data:
        for key, value in zip(_keys(data, path), data, strict=True):
            yield from _leaves(value, (*path, key))
    else:
        yield path, data


def _keys(items: list[Any] | tuple[Any, ...], path: tuple[str, ...]) -> list[str]:
    if path and path[-1] == "stages" and all(isinstance(item, Mapping) for item in items):
        names = [str(item.get("name", "")) for item in items]
        if len(set(names)) == len(names) and all(names):
            return names
    return [str(index) for index in range(len(items))]


def _text(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
    )
