"""``schema``: the JSON Schema of recipes, from the same records that validate them."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from agentrecipes.cli.arguments import Parts, add_parts
from agentrecipes.cli.fields import comments_of, constraints
from agentrecipes.cli.output import emit_json
from agentrecipes.components import FOLDER, Component, Fields, PartOf, find, names
from agentrecipes.recipe.presets import presets
from agentrecipes.recipe.schema import RecipeFields, RewardEntry, Stage
from agentrecipes.rewards.algebra import WeightedReward
from agentrecipes.schedules import KEYS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCALARS = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
SCHEDULE = "#/$defs/schedule"
ENTRIES: Mapping[type[Fields], str] = {
    RewardEntry: "reward_entry",
    WeightedReward: "weighted_reward",
}
"""Records whose fields stand beside those of the reward that they hold."""
Schema = dict[str, Any]


def schema(parts: Parts = None) -> None:
    """Print the JSON Schema of recipes; an editor that has it completes and checks as you type."""
    add_parts(parts)
    emit_json(recipe_schema())


def recipe_schema() -> Schema:
    """The schema of a recipe file, every installed part included."""
    top = _properties(RecipeFields) | _stage_properties()
    del top["stages"]
    stage = {"type": "object", "additionalProperties": False}
    return {
        "$schema": DIALECT,
        "title": "agentrecipes recipe",
        "type": "object",
        "properties": {
            **top,
            "stages": {"type": "array", "items": {"$ref": "#/$defs/stage"}, "minItems": 1},
            "profiles": {"type": "object", "additionalProperties": {"$ref": "#/$defs/overlay"}},
            "extends": {"type": "string", "description": "the recipe file this one merges over"},
        },
        "additionalProperties": False,
        "anyOf": [{"required": ["name"]}, {"required": ["extends"]}],
        "$defs": {
            "schedule": {"oneOf": [_schedule(kind) for kind in sorted(KEYS)]},
            **{kind: _kind(kind) for kind in sorted(FOLDER)},
            **{name: _entry(cls) for cls, name in ENTRIES.items()},
            "stage": {**stage, "properties": _stage_properties(named=True), "required": ["name"]},
            "overlay": {**stage, "properties": _overlay(top)},
        },
    }


def _overlay(top: Schema) -> Schema:
    """A profile: any part of a recipe; stages are reached by their names."""
    stages = {"type": "object", "additionalProperties": {"type": "object"}}
    return {**{key: _partly(value) for key, value in top.items()}, "stages": stages}


def _stage_properties(named: bool = False) -> Schema:
    """A stage's fields; a part may be written without its name, to merge over the one above."""
    found = {key: _partly(value) for key, value in _properties(Stage, scheduled=True).items()}
    del found["name"]
    found["rewards"] = {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/reward_entry"}, "minItems": 1},
            {"enum": presets(), "description": "a preset"},
        ]
    }
    return {**({"name": {"type": "string"}} if named else {}), **found}


def _partly(value: Schema) -> Schema:
    """Also allow the mapping that changes some fields of a part, without the part's name."""
    meaning = {key: item for key, item in value.items() if key == "description"}
    alone = {key: item for key, item in value.items() if key != "description"}
    options = alone.get("anyOf", [alone])
    if not any(option.get("$ref", SCHEDULE) != SCHEDULE for option in options):
        return value
    partial = {"type": "object", "not": {"required": ["name"]}}
    return {"anyOf": [*options, partial], **meaning}


def _kind(kind: str) -> Schema:
    known = names(kind)
    return {"anyOf": [{"enum": known}, *(part_schema(find(kind, name)) for name in known)]}


def part_schema(cls: type[Component], beside: Mapping[str, Any] | None = None) -> Schema:
    """A part written as a mapping: its name, its fields, and what may stand beside them."""
    doc = (cls.__doc__ or "").strip().partition("\n")[0]
    own = _properties(cls, scheduled=True)
    return {
        "type": "object",
        "description": doc,
        "properties": {"name": {"const": cls.part_name}, **own, **(beside or {})},
        "required": ["name", *required(cls)],
        "additionalProperties": False,
    }


def required(cls: type[Fields]) -> list[str]:
    """The fields that have no default."""
    return [info.alias or key for key, info in cls.model_fields.items() if info.is_required()]


def _entry(cls: type[Fields]) -> Schema:
    """A reward with the fields of `cls` beside its own."""
    beside = _properties(cls, scheduled=True)
    del beside["part"]
    known = names("reward")
    parts = [part_schema(find("reward", name), beside) for name in known]
    return {"anyOf": [{"enum": known}, *parts]}


def _properties(cls: type[Fields], scheduled: bool = False) -> Schema:
    """Field → schema, with the comment beside the field as its description."""
    meanings = comments_of(cls)
    loose = _loose_fields(cls)
    found = {}
    for key, info in cls.model_fields.items():
        value = {} if key in loose else _type(info.annotation, info.metadata, scheduled)
        if meanings.get(key):
            value = {**value, "description": meanings[key]}
        found[info.alias or key] = value
    return found


def _loose_fields(cls: type[Fields]) -> set[str]:
    """Fields that a validator reads before their type does: short forms that types do not tell."""
    decorators = cls.__pydantic_decorators__.field_validators.values()
    return {name for item in decorators if item.info.mode != "after" for name in item.info.fields}


def _type(annotation: Any, metadata: Sequence[Any], scheduled: bool) -> Schema:
    for item in metadata:
        if isinstance(item, PartOf):
            return {"$ref": f"#/$defs/{item.kind}"}
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type(arguments[0], [*arguments[1:], *metadata], scheduled)
    if origin in (typing.Union, types.UnionType):
        return {"anyOf": [_type(item, metadata, scheduled) for item in arguments]}
    if origin is typing.Literal:
        return _maybe_scheduled({"enum": list(arguments)}, scheduled)
    if annotation in SCALARS:
        value = {"type": SCALARS[annotation], **_bounds(metadata, annotation)}
        return _maybe_scheduled(value, scheduled and annotation is not type(None))
    if origin is tuple and Ellipsis not in arguments:
        return {"type": "array", "prefixItems": [_type(a, (), scheduled) for a in arguments]}
    if isinstance(origin, type) and issubclass(origin, Sequence | set | frozenset):
        return {"type": "array", "items": _type(arguments[0], (), scheduled)}
    if isinstance(annotation, type) and issubclass(annotation, Fields):
        return _record(annotation, scheduled)
    is_mapping = isinstance(origin or annotation, type) and issubclass(
        origin or annotation, Mapping
    )
    return {"type": "object"} if is_mapping else {}


def _record(cls: type[Fields], scheduled: bool) -> Schema:
    if cls in ENTRIES:
        return {"$ref": f"#/$defs/{ENTRIES[cls]}"}
    value: Schema = {
        "type": "object",
        "properties": _properties(cls, scheduled),
        "additionalProperties": False,
    }
    short = any(
        item.info.mode == "before" for item in cls.__pydantic_decorators__.model_validators.values()
    )
    return {"anyOf": [value, {"type": ["string", "array"]}]} if short else value


def _maybe_scheduled(value: Schema, scheduled: bool) -> Schema:
    return {"anyOf": [value, {"$ref": SCHEDULE}]} if scheduled else value


def _bounds(metadata: Sequence[Any], annotation: Any) -> Schema:
    words = {"gt": "exclusiveMinimum", "ge": "minimum", "lt": "exclusiveMaximum", "le": "maximum"}
    words |= {"pattern": "pattern"}
    words |= {"min_length": "minLength"} if annotation is str else {}
    return {
        word: getattr(item, key)
        for item in constraints(metadata)
        for key, word in words.items()
        if getattr(item, key, None) is not None
    }


def _schedule(kind: str) -> Schema:
    values: Schema = {"values": {"type": "array", "minItems": 1}, "value": {}}
    counts = {"type": "integer", "minimum": 1}
    known = {key: values.get(key, {"type": "number"}) for key in KEYS[kind]}
    known |= {key: counts for key in ("over", "every") if key in KEYS[kind]}
    return {
        "type": "object",
        "properties": {"schedule": {"const": kind}, **dict(sorted(known.items()))},
        "required": ["schedule", *sorted(KEYS[kind])],
        "additionalProperties": False,
    }
