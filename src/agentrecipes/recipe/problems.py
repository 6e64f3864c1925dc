"""Pydantic's errors in the author's words, each with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from agentrecipes.components import names, suggest
from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import problem_at
from agentrecipes.recipe.positions import Node, plain
from agentrecipes.recipe.shape import Shape, choices
from agentrecipes.recipe.wording import advice, expected, shown, with_article

_RANGE = {
    "greater_than",
    "greater_than_equal",
    "less_than",
    "less_than_equal",
    "too_short",
    "too_long",
    "string_too_short",
    "string_too_long",
    "multiple_of",
    "finite_number",
}
_VALUE = {"literal_error", "enum", "string_pattern_mismatch"}
_TYPE_ENDINGS = ("_type", "_parsing", "_from_float", "_unicode", "_size")


@dataclass(frozen=True, slots=True)
class Spot:
    """The deepest node on the way to an error, its shape, and the keys beyond it."""

    node: Node
    shape: Shape | None
    rest: tuple[str | int, ...]
    known: tuple[str, ...] = ()  # the keys that may stand where the node stands

    def problem(self, problem: Problem, *, key: bool = False) -> Problem:
        """The problem with this place; `key` points at the key and not at its value."""
        place = self.node.key if key and self.node.key and not self.rest else self.node.place
        return problem_at(place, (*self.node.path, *self.rest), problem)


def spot(tree: Node, shape: Shape | None, loc: Sequence[str | int]) -> Spot:
    """Walk down from `tree` as far as `loc` leads; tags that pydantic puts in are skipped."""
    node = tree
    known: tuple[str, ...] = ()
    rest: list[str | int] = []
    for step in loc:
        if isinstance(node.value, dict) and isinstance(step, str) and step in node.value:
            known = tuple(shape.children(node.name)) if shape is not None else ()
            shape = shape.entry(step, node.name) if shape is not None else None
            node = node.value[step]
        elif isinstance(node.value, list) and isinstance(step, int) and step < len(node.value):
            shape = shape.items if shape is not None else None
            node = node.value[step]
        else:
            rest.append(step)
    return Spot(node, shape, tuple(rest), known)


def from_pydantic(error: ValidationError, tree: Node, shape: Shape) -> list[Problem]:
    """Every error as a problem of the recipe; an error of a union's options is told once."""
    problems: dict[tuple[str, int | None, int | None], Problem] = {}
    lines = error.errors(include_url=False)
    for line in lines:
        if line["type"] == "too_short" and any(
            _inside(other["loc"], line["loc"]) for other in lines
        ):
            continue  # pydantic counts the entries that are right
        problem = _worded(line, spot(tree, shape, line["loc"]))
        problems.setdefault((problem.path, problem.line, problem.column), problem)
    return list(problems.values())


def _inside(loc: Sequence[str | int], outer: Sequence[str | int]) -> bool:
    return len(loc) > len(outer) and loc[: len(outer)] == outer


def _worded(line: Mapping[str, Any], at: Spot) -> Problem:
    kind, context, loc = line["type"], line.get("ctx", {}), line["loc"]
    if kind == "missing":
        return _missing(replace(at, rest=at.rest[-1:]), str(loc[-1]))
    if kind == "unknown_key":
        hint = suggest(str(loc[-1]), at.known) if at.known else context.get("hint", "")
        found = Problem(kind, "", line["msg"], hint)
        return replace(at, rest=()).problem(found, key=True)
    if kind == "unknown_part":
        name = at.node.items.get("name", at.node)
        found = Problem(kind, "", line["msg"], context.get("hint", ""))
        return Spot(name, None, ()).problem(found)
    if "hint" in context:
        return _not_a_part(line, replace(at, rest=()))
    return _wrong(line, replace(at, rest=()))


def _missing(at: Spot, key: str) -> Problem:
    inside = at.shape.entry(key, at.node.name) if at.shape is not None else None
    hint = advice(inside, key) if inside is not None else f"Write `{key}: …`."
    if inside is not None and inside.part_kind:
        hint = f"Write `{key}: NAME`; known: {', '.join(names(inside.part_kind)) or 'none'}."
    return at.problem(Problem("missing_key", "", f"{key!r} is missing", hint))


def _not_a_part(line: Mapping[str, Any], at: Spot) -> Problem:
    context = line["ctx"]
    if "kind" in context and isinstance(at.node.value, dict):
        message = f"{with_article(context['kind'])} needs a name"
        return replace(at, rest=("name",)).problem(
            Problem("missing_key", "", message, context["hint"])
        )
    if "kind" in context:
        message = f"expected {with_article(context['kind'])}, but got {shown(plain(at.node))}"
        return at.problem(Problem("wrong_type", "", message, context["hint"]))
    return at.problem(Problem(line["type"], "", line["msg"], context["hint"]))


def _wrong(line: Mapping[str, Any], at: Spot) -> Problem:
    kind, value = line["type"], plain(at.node)
    code = _code(kind)
    key = str(line["loc"][-1]) if line["loc"] else ""
    if code is None or at.shape is None:
        hint = "Correct it." if at.shape is None else advice(at.shape, key)
        return at.problem(Problem(code or "wrong_value", "", line["msg"].rstrip("."), hint))
    message = f"expected {expected(at.shape)}, but got {shown(value)}"
    allowed = tuple(v for option in at.shape.options for v in choices(option))
    if code == "wrong_value" and allowed and isinstance(value, str):
        hint = suggest(value, (str(choice) for choice in allowed))
    else:
        hint = advice(at.shape, key)
    return at.problem(Problem(code, "", message, hint))


def _code(kind: str) -> str | None:
    if kind in _RANGE:
        return "out_of_range"
    if kind in _VALUE:
        return "wrong_value"
    if kind.endswith(_TYPE_ENDINGS) or kind in ("model_attributes_type", "dict_type"):
        return "wrong_type"
    return None
