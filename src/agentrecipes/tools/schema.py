"""Checks a call's arguments against the JSON Schema of its tool.

A subset of JSON Schema is checked: ``type`` (one or a list), ``enum``, ``const``, ``anyOf``,
``properties``, ``required``, ``additionalProperties``, ``items``, ``minItems``, ``maxItems``,
``minLength``, ``maxLength``, ``minimum``, ``maximum``, ``exclusiveMinimum``, ``exclusiveMaximum``,
and ``$ref`` to the schema's own ``$defs``. Other keywords say something to the policy and are not
checked. A name that the schema does not list is refused, unless ``additionalProperties`` allows it.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from agentrecipes.components import suggest

Schema = Mapping[str, Any]
TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}
BOUNDS: Mapping[
    str, tuple[Callable[[Any, Any], bool], str]
] = {  # keyword → whether a value keeps to the bound, and what it must be
    "minimum": (operator.ge, "at least"),
    "maximum": (operator.le, "at most"),
    "exclusiveMinimum": (operator.gt, "above"),
    "exclusiveMaximum": (operator.lt, "below"),
}
LENGTHS = {
    "minLength": (str, 1),
    "maxLength": (str, -1),
    "minItems": (list, 1),
    "maxItems": (list, -1),
}
UNITS = {str: "characters", list: "entries"}


def faults(arguments: Mapping[str, Any], parameters: Schema) -> list[str]:
    """What is wrong with `arguments`, each fault in a sentence for the policy."""
    try:
        return list(_Checker(parameters).object(dict(arguments), {**parameters}, ""))
    except RecursionError:
        return ["the arguments are nested too deep"]


class _Checker:
    def __init__(self, root: Schema) -> None:
        self._root = root

    def check(self, value: Any, schema: Schema, path: str) -> Iterator[str]:
        """The faults of one value."""
        schema = self._resolved(schema)
        if "anyOf" in schema:
            tried = [list(self.check(value, option, path)) for option in schema["anyOf"]]
            if all(tried):
                yield min(tried, key=len)[0]
                return
        if "const" in schema and not _same(value, schema["const"]):
            yield f"{path} must be {_shown(schema['const'])}, but got {_shown(value)}"
        if "enum" in schema and not any(_same(value, option) for option in schema["enum"]):
            options = ", ".join(map(_shown, schema["enum"]))
            yield f"{path} must be one of {options}, but got {_shown(value)}"
        types = schema.get("type", ())
        types = [types] if isinstance(types, str) else list(types)
        if types and not any(_is(value, name) for name in types):
            yield f"{path} must be {' or '.join(types)}, but got {_shown(value)}"
            return
        yield from _bounds(value, schema, path)
        if isinstance(value, dict):
            yield from self.object(value, {"additionalProperties": True, **schema}, f"{path}.")
        if isinstance(value, list | tuple) and "items" in schema:
            for place, item in enumerate(value):
                yield from self.check(item, schema["items"], f"{path}[{place}]")

    def object(self, value: Mapping[str, Any], schema: Schema, prefix: str) -> Iterator[str]:
        """The faults of an object's entries."""
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{prefix}{name} is missing"
        for name, item in value.items():
            if name in properties:
                yield from self.check(item, properties[name], f"{prefix}{name}")
                continue
            more = schema.get("additionalProperties", False)
            if more is False:
                yield f"no argument is called {prefix + name!r}. {suggest(name, properties)}"
            elif isinstance(more, Mapping):
                yield from self.check(item, more, f"{prefix}{name}")

    def _resolved(self, schema: Schema) -> Schema:
        where = str(schema.get("$ref", ""))
        if not where.startswith("#/$defs/"):
            return schema
        definitions: Mapping[str, Schema] = self._root.get("$defs", {})
        return {**definitions.get(where.removeprefix("#/$defs/"), {}), **_without_ref(schema)}


def _without_ref(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "$ref"}


def _is(value: Any, name: str) -> bool:
    """Whether a value is of a JSON type; 2.0 is an integer as JSON Schema has it, true is not."""
    if isinstance(value, bool):
        return name == "boolean"
    if name == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, TYPES.get(name, (object,)))


def _same(value: Any, option: Any) -> bool:
    return type(value) is type(option) and bool(value == option)


def _bounds(value: Any, schema: Schema, path: str) -> Iterator[str]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for key, (holds, words) in BOUNDS.items():
            if key in schema and not holds(value, schema[key]):
                yield f"{path} must be {words} {schema[key]}, but got {_shown(value)}"
    for key, (kind, sign) in LENGTHS.items():
        if key in schema and isinstance(value, kind) and sign * (len(value) - schema[key]) < 0:
            words = "at least" if sign > 0 else "at most"
            yield f"{path} must have {words} {schema[key]} {UNITS[kind]}, but has {len(value)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= 60 else text[:57] + "..."
