"""How problems speak: what a field expects, and a value as YAML would write it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args, get_origin

from pydantic_core import PydanticUndefined

from agentrecipes.components import plain
from agentrecipes.recipe.shape import Shape, choices

LONGEST = 60  # characters of a value in a message
_NOUNS = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
_PATTERNS = {
    r"^[a-z0-9][a-z0-9_\-]*$": "a name of small letters, digits, _ and -",
    r"^[A-Za-z0-9][\w \-]*@[A-Za-z][\w\-]*$": "a model and its alias, 'searcher@best'",
}


def shown(value: Any) -> str:
    """A value as YAML's flow style would write it, texts in single quotes, cut to a line."""
    text = _flow(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return repr(value)


def expected(shape: Shape) -> str:
    """What a field takes, in the author's words: ``a whole number of at least 1``."""
    options = [_one(option) for option in shape.options]
    known = list(dict.fromkeys(option for option in options if option))
    text = " or ".join(known) or "another value"
    return f"{text}, or null" if shape.nullable else text


def _one(shape: Shape) -> str:
    if shape.part_kind:
        return with_article(shape.part_kind)
    if values := choices(shape):
        return values_of(values)
    if shape.record is not None or get_origin(shape.type) in (dict, Mapping):
        return "a mapping of fields"
    if shape.items is not None:
        return _list(shape)
    if pattern := next((m.pattern for m in shape.marks if getattr(m, "pattern", None)), None):
        return _PATTERNS.get(pattern, f"a text that matches {pattern}")
    noun = _NOUNS.get(shape.type, "")
    return f"{noun} {bounds}" if noun and (bounds := _bounds(shape)) else noun


def with_article(noun: str) -> str:
    """``an environment``, ``a reward``, ``demonstrations``."""
    if noun.endswith("s"):
        return noun
    return f"an {noun}" if noun[0] in "aeiou" else f"a {noun}"


def values_of(values: tuple[Any, ...]) -> str:
    """``one of 'fixed', 'ready'``."""
    listed = ", ".join(shown(value) for value in values)
    return listed if len(values) == 1 else f"one of {listed}"


def _list(shape: Shape) -> str:
    arguments = get_args(shape.type)
    if get_origin(shape.type) is tuple and Ellipsis not in arguments:
        entry = _NOUNS.get(shape.items.type, "a value") if shape.items else "a value"
        return f"a list of {len(arguments)} {entry.removeprefix('a ')}s"
    least = _bound(shape, "min_length")
    return f"a list of at least {least}" if least else "a list"


def _bounds(shape: Shape) -> str:
    at_least, above = _bound(shape, "ge"), _bound(shape, "gt")
    at_most, below = _bound(shape, "le"), _bound(shape, "lt")
    if at_least is not None and at_most is not None:
        return f"from {at_least:g} to {at_most:g}"
    words = (
        ("of at least", at_least),
        ("above", above),
        ("of at most", at_most),
        ("below", below),
    )
    return " and ".join(f"{word} {bound:g}" for word, bound in words if bound is not None)


def _bound(shape: Shape, name: str) -> float | None:
    return next((b for m in shape.marks if (b := getattr(m, name, None)) is not None), None)


def advice(shape: Shape, key: str) -> str:
    """What to write instead: the default as an example, or what is expected."""
    default = plain(shape.default) if shape.default is not PydanticUndefined else None
    if default is None or isinstance(default, dict | list):
        return f"Write {expected(shape)}."
    return f"Write for example `{key}: {default if isinstance(default, str) else shown(default)}`."
