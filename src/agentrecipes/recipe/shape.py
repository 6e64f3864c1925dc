"""What a field of a recipe may hold, read from the annotations of parts and records.

Merging needs to know which mappings are parts; problems need to say what was expected; paths and
environment variables may stand only in some fields. All of it is asked here, so that no list of
fields exists twice.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import or_
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agentrecipes.components import Fields, FileName, PartOf, find
from agentrecipes.recipe.positions import Loc
from agentrecipes.schedules import is_schedule

_LISTS = (tuple, list, set, frozenset, Sequence)


@dataclass(frozen=True, slots=True)
class Shape:
    """One field: its type without ``Annotated`` and ``| None``, and what was beside it."""

    type: Any
    marks: tuple[Any, ...] = ()
    nullable: bool = False
    default: Any = PydanticUndefined

    @property
    def kind(self) -> str | None:
        """The kind of part that the field holds."""
        return next((mark.kind for mark in self.marks if isinstance(mark, PartOf)), None)

    @property
    def record(self) -> type[Fields] | None:
        """The record that the field holds."""
        return self.type if isinstance(self.type, type) and issubclass(self.type, Fields) else None

    @property
    def file(self) -> FileName | None:
        """How the field names a file."""
        return next((mark for mark in self.marks if isinstance(mark, FileName)), None)

    @property
    def is_part(self) -> bool:
        """Whether a mapping here is a part, which another ``name`` replaces whole."""
        return self.kind is not None or "part" in (fields(self.record) if self.record else {})

    @property
    def part_kind(self) -> str | None:
        """The kind of the part, also where an entry wraps it (rewards)."""
        embedded = fields(self.record).get("part") if self.record else None
        return embedded.kind if embedded else self.kind

    @property
    def options(self) -> tuple[Shape, ...]:
        """The alternatives of a union; the shape itself where there is none."""
        if get_origin(self.type) in (Union, types.UnionType):
            return tuple(shape_of(option) for option in get_args(self.type))
        return (self,)

    @property
    def items(self) -> Shape | None:
        """The shape of a list's entries; None where the field holds no list."""
        arguments = get_args(self.type)
        if get_origin(self.type) in _LISTS and arguments:
            return shape_of(arguments[0])
        return next((s.items for s in self.options if s is not self and s.items), None)

    def children(self, name: str | None) -> Mapping[str, Shape]:
        """The fields of a mapping here; `name` is the part's, where it is a part."""
        if self.kind is not None:
            return {"name": Shape(str), **_part_fields(self.kind, name)}
        if self.record is not None:
            own = fields(self.record)
            if "part" in own:
                part = own["part"].children(name)
                return {**part, **{key: shape for key, shape in own.items() if key != "part"}}
            return own
        return next(
            (s.children(name) for s in self.options if s is not self and s.children(name)), {}
        )

    def entry(self, key: str, name: str | None) -> Shape | None:
        """The shape of one entry of a mapping here."""
        if get_origin(self.type) in (dict, Mapping):
            return shape_of(get_args(self.type)[1])
        return self.children(name).get(key)


def shape_of(
    annotation: Any, marks: tuple[Any, ...] = (), default: Any = PydanticUndefined
) -> Shape:
    """The shape of an annotation."""
    nullable = False
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *more = get_args(annotation)
            marks += tuple(m for mark in more for m in _opened(mark))
        elif origin in (Union, types.UnionType) and type(None) in get_args(annotation):
            nullable = True
            others = [a for a in get_args(annotation) if a is not type(None)]
            annotation = others[0] if len(others) == 1 else reduce(or_, others)
        else:
            return Shape(annotation, marks, nullable, default)


def _opened(mark: Any) -> list[Any]:
    """Pydantic leaves a ``Field(ge=1)`` unopened where it stands inside a union."""
    return list(mark.metadata) if isinstance(mark, FieldInfo) else [mark]


@lru_cache(maxsize=512)
def fields(record: type[Fields]) -> dict[str, Shape]:
    """The fields of a record, by the name that YAML uses."""
    return {
        field.alias or key: shape_of(
            field.annotation, tuple(field.metadata), field.get_default(call_default_factory=False)
        )
        for key, field in record.model_fields.items()
    }


def _part_fields(kind: str, name: str | None) -> dict[str, Shape]:
    try:
        return fields(find(kind, name)) if name else {}
    except KeyError:  # an unknown part is reported when it is built
        return {}


@dataclass(frozen=True, slots=True)
class Leaf:
    """A scalar (or anything without known fields) inside a recipe, with the parts that hold it."""

    value: Any
    loc: Loc
    shape: Shape | None
    holders: tuple[tuple[str, str | None], ...]  # (kind, name), outermost first


Holders = tuple[tuple[str, str | None], ...]


def visit(
    data: Any,
    shape: Shape | None,
    change: Callable[[Leaf], Any],
    *,
    loc: Loc = (),
    holders: Holders = (),
) -> Any:
    """A copy of plain data with each leaf replaced by what `change` returns, schedules apart."""
    if isinstance(data, Mapping) and not is_schedule(data):
        name = data.get("name") if isinstance(data.get("name"), str) else None
        if shape is not None and shape.part_kind:
            holders = (*holders, (shape.part_kind, name))

        def inside(key: str) -> Shape | None:
            return shape.entry(key, name) if shape is not None else None

        return {
            key: visit(item, inside(key), change, loc=(*loc, key), holders=holders)
            for key, item in data.items()
        }
    if isinstance(data, list):
        items = shape.items if shape else None
        return [
            visit(item, items, change, loc=(*loc, i), holders=holders)
            for i, item in enumerate(data)
        ]
    return data if is_schedule(data) else change(Leaf(data, loc, shape, holders))


def choices(shape: Shape) -> tuple[Any, ...]:
    """The values of a ``Literal``; empty for anything else."""
    return get_args(shape.type) if get_origin(shape.type) is Literal else ()
