"""What stands in a recipe and what a part gets: environment variables, file names, number types."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

from agentrecipes.components import FileName
from agentrecipes.errors import Problem
from agentrecipes.recipe.positions import Loc, Node, lookup, put
from agentrecipes.recipe.shape import Leaf, Shape, choices, visit
from agentrecipes.recipe.source import ENVIRONMENT
from agentrecipes.recipe.wording import advice, expected, shown


@dataclass(frozen=True, slots=True)
class Paths:
    """Where file names start, and whether they may lead anywhere (a run's own recipe may)."""

    folder: Path
    trusted: bool = False


_TEXT_FILES = {".txt", ".md", ".jinja"}
# Parts name files in these fields even where they do not say so with a mark.
_USUAL = {
    ("dataset", "path"): FileName("data"),
    ("retriever", "corpus"): FileName("data"),
    ("environment", "system"): FileName("text"),
    ("environment", "prompt"): FileName("text"),
}


def typed_form(data: Any, shape: Shape, folder: Path) -> tuple[Any, list[Loc]]:
    """Plain data as parts get it, and where it differs from what the recipe says.

    Environment variables are expanded and file names start at `folder`; a prompt's file is read.
    """
    changed: list[Loc] = []

    def change(leaf: Leaf) -> Any:
        value = _expanded(leaf.value) if isinstance(leaf.value, str) else leaf.value
        if isinstance(value, str) and (mark := file_mark(leaf)) is not None:
            value = _file(value, mark, folder)
        if value is not leaf.value:
            changed.append(leaf.loc)
        return value

    return visit(data, shape, change), changed


def _expanded(text: str) -> str:
    if "${" not in text:
        return text
    return ENVIRONMENT.sub(lambda match: os.environ.get(match[1], ""), text)


def _file(value: str, mark: FileName, folder: Path) -> str:
    path = folder / value
    if mark.what == "text":
        return path.read_text("utf-8") if names_text(value) and path.is_file() else value
    if mark.what == "hub" and not path.exists():
        return value
    return str(path.resolve())


def names_text(value: str) -> bool:
    """Whether a text is the name of a file that holds the text."""
    return "\n" not in value and Path(value).suffix in _TEXT_FILES


def file_mark(leaf: Leaf) -> FileName | None:
    """How a leaf names a file, or None."""
    if leaf.shape is not None and leaf.shape.file is not None:
        return leaf.shape.file
    if not leaf.holders or not isinstance(leaf.value, str):
        return None
    kind, name = leaf.holders[-1]
    if leaf.loc[-1] == "path":
        return (
            FileName("hub")
            if name in ("hub", "hf")
            else _USUAL.get((kind, "path"), FileName("hub"))
        )
    return _USUAL.get((kind, str(leaf.loc[-1])))


def leaves(data: Any, shape: Shape) -> list[Leaf]:
    """Every scalar in plain data."""
    found: list[Leaf] = []

    def keep(leaf: Leaf) -> Any:
        found.append(leaf)
        return leaf.value

    visit(data, shape, keep)
    return found


def anchored(tree: Node, found: list[Leaf], paths: Paths) -> Node:
    """The tree with file names that start elsewhere than at the recipe's folder made absolute.

    Those are what the user typed (it starts where she stands) and what a file elsewhere brought.
    """
    for leaf in found:
        node = lookup(tree, leaf.loc)
        start = node.place.folder if node is not None else None
        if node is None or start is None or not isinstance(leaf.value, str):
            continue
        if not node.place.typed and (paths.trusted or start == paths.folder):
            continue
        mark = file_mark(leaf)
        if mark is None or (mark.what == "text" and not names_text(leaf.value)):
            continue
        path = start / leaf.value
        if path.exists() or mark.what == "made":
            tree = put(tree, leaf.loc, Node(str(path.resolve()), node.place, node.path, node.key))
    return tree


def value_problems(tree: Node, found: list[Leaf], paths: Paths) -> Iterator[tuple[Leaf, Problem]]:
    """What is wrong with single values, whatever stands around them."""
    for leaf in found:
        node = lookup(tree, leaf.loc)
        if node is None:
            continue
        if (problem := _coerced(leaf)) is not None:
            yield leaf, problem
        if isinstance(leaf.value, str):
            problem = _variable(leaf) or _path(leaf, node, paths)
            if problem is not None:
                yield leaf, problem


def _coerced(leaf: Leaf) -> Problem | None:
    """Pydantic would read ``"16"`` and ``true`` as numbers, and 1 as ``true``; authors do not."""
    if leaf.shape is None or leaf.value is None:
        return None
    options = leaf.shape.options
    types = {option.type for option in options}
    if leaf.shape.part_kind or any(choices(o) or get_origin(o.type) for o in options):
        return None
    wrong = (
        (isinstance(leaf.value, str) and types <= {int, float, bool})
        or (isinstance(leaf.value, bool) and types <= {int, float})
        or (isinstance(leaf.value, int) and not isinstance(leaf.value, bool) and types <= {bool})
    )
    if not wrong:
        return None
    found = f"expected {expected(leaf.shape)}, but got {shown(leaf.value)}"
    return Problem("wrong_type", "", found, advice(leaf.shape, str(leaf.loc[-1])))


def _variable(leaf: Leaf) -> Problem | None:
    names = ENVIRONMENT.findall(leaf.value)
    if not names:
        return None
    judged = any(kind == "judge" for kind, _ in leaf.holders)
    if leaf.loc[0] != "tracking" and not judged and file_mark(leaf) is None:
        hint = "Write the value itself; variables may stand in tracking, judges and paths."
        return Problem("interpolation", "", f"{leaf.value!r} may not stand here", hint)
    missing = [name for name in names if name not in os.environ]
    if missing:
        found = f"the environment variable {missing[0]} is not set"
        return Problem("missing_variable", "", found, f"Set it: `export {missing[0]}=…`.")
    return None


def _path(leaf: Leaf, node: Node, paths: Paths) -> Problem | None:
    mark = file_mark(leaf)
    if mark is None or mark.what == "hub" or (mark.what == "text" and not names_text(leaf.value)):
        return None
    start = paths.folder if paths.trusted else node.place.folder or paths.folder
    path = start / _expanded(leaf.value)
    named = node.place.typed or "${" in leaf.value or paths.trusted
    if not named and not path.resolve().is_relative_to(start.resolve()):
        hint = "Copy it beside the recipe, or name it on the command line: `key.path=FILE`."
        return Problem(
            "outside_folder", "", f"{leaf.value!r} lies outside of the recipe's folder", hint
        )
    if not path.exists() and mark.what != "made":
        hint = f"Correct the path; it starts at {str(start)!r}."
        return Problem("missing_file", "", f"there is no file {leaf.value!r}", hint)
    return None
