"""What a record's fields mean: the comments beside them are their documentation."""

from __future__ import annotations

import ast
import inspect
import io
import tokenize
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from agentrecipes.components import FOLDER, Component, Fields, PartOf, plain


@dataclass(frozen=True, slots=True)
class FieldLine:
    """One field as documentation shows it."""

    name: str
    type: str  # as YAML thinks of it: int, float, one of "a", "b", a reward, ...
    default: Any  # plain; `required` says that there is none
    required: bool
    limits: str  # "> 0", ">= 1, <= 10"; "" for none
    meaning: str  # the comment beside the field, else the description that its type brings


def field_lines(cls: type[Fields]) -> list[FieldLine]:
    """Every field of a record, in order."""
    meanings = comments_of(cls)
    lines = []
    for key, info in cls.model_fields.items():
        default = info.get_default(call_default_factory=True, validated_data={})
        required = default is PydanticUndefined
        lines.append(
            FieldLine(
                name=info.alias or key,
                type=_with_part(info) or type_name(info.annotation),
                default=None if required else plain(default),
                required=required,
                limits=", ".join(_limits(info.metadata)),
                meaning=meanings.get(key) or info.description or "",
            )
        )
    return lines


def _with_part(info: Any) -> str | None:
    for item in info.metadata:
        if isinstance(item, PartOf):
            return part_type(item.kind)
    return None


def part_type(kind: str) -> str:
    """``a reward``, ``an engine``, ``demonstrations``."""
    if kind == "demonstrations":
        return kind
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def is_part(type_: str) -> bool:
    """Whether a type, as told, is that of a part."""
    return any(part_type(kind) in type_ for kind in FOLDER)


def comments_of(cls: type[Fields]) -> dict[str, str]:
    """Field → the comment on its lines; a subclass's wins over its parent's."""
    found: dict[str, str] = {}
    for owner in reversed(cls.__mro__):
        if issubclass(owner, Fields) and owner not in (Fields, Component):
            source = inspect.getsourcefile(owner)
            if source is not None:
                found |= _comments(Path(source)).get(owner.__qualname__, {})
    return found


@lru_cache
def _comments(path: Path) -> dict[str, dict[str, str]]:
    """Class → field → comment, for every class in a file."""
    text = path.read_text(encoding="utf-8")
    by_line = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    }
    found: dict[str, dict[str, str]] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            found[node.name] = {
                name: " ".join(by_line[line] for line in lines if line in by_line)
                for name, lines in _field_spans(node, by_line)
            }
    return found


def _field_spans(node: ast.ClassDef, by_line: dict[int, str]) -> Iterator[tuple[str, range]]:
    """Each field and the lines whose comments are its: its own, and whole-line ones right after."""
    code = {line for item in node.body for line in range(item.lineno, (item.end_lineno or 0) + 1)}
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            end = item.end_lineno or item.lineno
            if any(line in by_line for line in range(item.lineno, end + 1)):
                while end + 1 in by_line and end + 1 not in code:
                    end += 1
            yield item.target.id, range(item.lineno, end + 1)


def constraints(metadata: Sequence[Any]) -> Iterator[Any]:
    """The single constraints inside what stands beside a type in ``Annotated``."""
    for item in metadata:
        yield from item.metadata if isinstance(item, FieldInfo) else [item]


def _limits(metadata: Sequence[Any]) -> Iterator[str]:
    signs = {"gt": ">", "ge": "≥", "lt": "<", "le": "≤"}
    for item in constraints(metadata):
        for key, sign in signs.items():
            if getattr(item, key, None) is not None:
                yield f"{sign} {getattr(item, key):g}"
        if getattr(item, "min_length", None):
            yield f"at least {item.min_length}"
        if getattr(item, "pattern", None):
            yield f"matches {item.pattern}"


def type_name(annotation: Any) -> str:
    """A type in the words of somebody who writes YAML."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        for item in arguments[1:]:
            if isinstance(item, PartOf):
                return part_type(item.kind)
        limits = ", ".join(_limits(arguments[1:]))
        return f"{type_name(arguments[0])} {limits}".strip()
    if origin is typing.Literal:
        return " | ".join(map(str, arguments))
    if origin in (typing.Union, types.UnionType):
        return " | ".join(dict.fromkeys(type_name(item) for item in arguments))
    if origin in (tuple, list, set, frozenset) or _is_sequence(origin):
        items = [type_name(item) for item in arguments if item is not Ellipsis]
        return f"list of {items[0]}" if len(set(items)) == 1 else f"[{', '.join(items)}]"
    if origin is dict or (origin is not None and issubclass(origin, Mapping)):
        return "mapping"
    return _plain_name(annotation)


def _is_sequence(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Sequence)


def _plain_name(annotation: Any) -> str:
    names = {type(None): "null", str: "text", bool: "true | false", Any: "anything", Path: "path"}
    names |= {dict: "mapping", tuple: "list", list: "list"}
    if annotation in names:
        return names[annotation]
    return str(getattr(annotation, "__name__", annotation))
