"""One recipe file as a tree of nodes: safe YAML only, within limits.

The file may come from anybody. Values are read by OmegaConf (``1e-5`` is a number, which plain
PyYAML would read as text); PyYAML gives the positions.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from agentrecipes.errors import Problem, RecipeError
from agentrecipes.recipe.positions import Node, Place, read_nodes

MAX_BYTES = 1 << 20
MAX_DEPTH = 24  # nesting; a real recipe has about 6
MAX_NODES = 20_000  # keys and values, with every alias counted as what it stands for
ENVIRONMENT = re.compile(r"\$\{oc\.env:([A-Za-z_][A-Za-z0-9_]*)\}")


def read(path: Path, shown: str) -> Node:
    """The mapping in the file; `shown` is how problems name the file.

    Raises:
        RecipeError: the file is missing, unsafe or no YAML mapping; with all problems found.
    """
    root, value = _composed(_text(path, shown), shown)

    def where(mark: yaml.Mark) -> Place:
        line = mark.line + 1
        return Place(f"{shown}:{line}", shown, line, mark.column + 1, path.resolve().parent)

    return read_nodes(root, value, where)


def parse(text: str, shown: str) -> dict[str, Any]:
    """The plain values of a YAML mapping, within the same limits.

    Raises:
        RecipeError: it is unsafe or no YAML mapping.
    """
    _, value = _composed(text, shown)
    return dict(value)


def dump(data: Mapping[str, Any]) -> str:
    """Plain values as YAML that `parse` reads back."""
    return OmegaConf.to_yaml(OmegaConf.create(dict(data)))


def _composed(text: str, shown: str) -> tuple[yaml.Node, Any]:
    """A document's nodes, and its values in the same shape."""
    if len(text) > MAX_BYTES:
        raise _too_large(shown)
    try:
        _check_events(text, shown)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        raise RecipeError([_malformed(error, shown)]) from None
    except yaml.reader.ReaderError as error:
        raise RecipeError([_unprintable(error, text, shown)]) from None
    if root is None:
        raise RecipeError(
            [Problem("empty_file", "", "the file holds nothing", "Write a recipe.", file=shown)]
        )
    if not isinstance(root, yaml.MappingNode):
        raise RecipeError(
            [_found("wrong_type", "the file holds no mapping", root.start_mark, shown=shown)]
        )
    if problems := _Walk(shown).problems_of(root):
        raise RecipeError(problems)
    try:
        value = OmegaConf.to_container(OmegaConf.create(text))
    except (OmegaConfBaseException, yaml.YAMLError, ValueError) as error:
        reason = str(error).splitlines()[0]
        problem = Problem("invalid_yaml", "", reason, "Correct the value.", file=shown)
        raise RecipeError([problem]) from None
    return root, value


def _text(path: Path, shown: str) -> str:
    if path.is_dir():
        raise _file_error(
            "missing_file", "this is a folder", hint="Name a YAML file in it.", shown=shown
        )
    if not path.exists():
        hint = "Check the path, or name a recipe from `recipes/`."
        raise _file_error("missing_file", "there is no such file", hint=hint, shown=shown)
    if not path.is_file():
        raise _file_error(
            "missing_file", "this is no plain file", hint="Name a YAML file.", shown=shown
        )
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = f"the file cannot be read ({error.strerror})"
        raise _file_error(
            "missing_file", reason, hint="Check its permissions.", shown=shown
        ) from None
    if len(data) > MAX_BYTES:
        raise _too_large(shown)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        message = f"byte {error.start} ({data[error.start]:#04x}) is not UTF-8"
        problem = Problem("not_utf8", "", message, "Save the file as UTF-8.", file=shown, line=line)
        raise RecipeError([problem]) from None


def _too_large(shown: str) -> RecipeError:
    message, hint = f"the file is larger than {MAX_BYTES} bytes", "Keep data in files of their own."
    return _file_error("too_large", message, hint=hint, shown=shown)


def _file_error(code: str, message: str, *, hint: str, shown: str) -> RecipeError:
    return RecipeError([Problem(code, "", message, hint, file=shown)])


def _found(code: str, message: str, mark: yaml.Mark, *, shown: str, hint: str = "") -> Problem:
    hint = hint or "Write `key: value` lines."
    return Problem(code, "", message, hint).at(shown, mark.line + 1, mark.column + 1)


def _check_events(text: str, shown: str) -> None:
    """Refuse, before anything recurses, what is too deep or too long, tags and second documents."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        mark = event.start_mark
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if documents > 1:
            hint = "Write one recipe a file; variants are `profiles`."
            found = _found("invalid_yaml", "a second document begins", mark, shown=shown, hint=hint)
        elif depth > MAX_DEPTH:
            hint = "Write it flatter."
            found = _found(
                "too_large", f"nested deeper than {MAX_DEPTH}", mark, shown=shown, hint=hint
            )
        elif count > MAX_NODES:
            hint = "Keep data in files of their own."
            found = _found(
                "too_large", f"more than {MAX_NODES} values", mark, shown=shown, hint=hint
            )
        elif getattr(event, "tag", None) not in (None, "!"):
            hint = "Recipes hold plain values only: remove the tag."
            found = _found(
                "invalid_yaml", f"the tag {event.tag!r} stands here", mark, shown=shown, hint=hint
            )
        else:
            continue
        raise RecipeError([found])


def _malformed(error: yaml.MarkedYAMLError, shown: str) -> Problem:
    mark = error.problem_mark or error.context_mark
    message = error.problem or "this is not YAML"
    hint = "Check indentation, colons, quotes and brackets up to here."
    if "\\t" in message:
        message, hint = "a tab stands where only spaces may", "Indent with spaces."
    problem = Problem("invalid_yaml", "", message, hint, file=shown)
    return problem.at(shown, mark.line + 1, mark.column + 1) if mark else problem


def _unprintable(error: yaml.reader.ReaderError, text: str, shown: str) -> Problem:
    before = text[: error.position]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
    message = f"the character U+{_code_point(error.character):04X} may not stand in YAML"
    return Problem("invalid_yaml", "", message, "Remove it.").at(shown, line, column)


def _code_point(character: str | int | bytes) -> int:
    return character if isinstance(character, int) else ord(character)


class _Walk:
    """Goes through a composed document once, and notes keys, sizes and values that cannot stand."""

    def __init__(self, shown: str) -> None:
        self._shown = shown
        self._problems: list[Problem] = []
        self._sizes: dict[int, int] = {}  # node id → nodes in it, aliases expanded
        self._open: set[int] = set()

    def problems_of(self, root: yaml.Node) -> list[Problem]:
        if self._size(root) > MAX_NODES and not self._problems:
            self._note("too_large", f"aliases stand for more than {MAX_NODES} values", root)
        return self._problems

    def _size(self, node: yaml.Node) -> int:
        if id(node) in self._open:
            self._note("invalid_yaml", "an alias stands inside of what it stands for", node)
            return 1
        if id(node) not in self._sizes:
            self._open.add(id(node))
            self._sizes[id(node)] = 1 + self._inside(node)
            self._open.discard(id(node))
        return self._sizes[id(node)]

    def _inside(self, node: yaml.Node) -> int:
        if isinstance(node, yaml.SequenceNode):
            return sum(self._size(item) for item in node.value)
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node)
            return sum(1 + self._size(item) for _, item in node.value)
        self._check_scalar(node)
        return 0

    def _check_keys(self, node: yaml.MappingNode) -> None:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.tag != "tag:yaml.org,2002:str":
                text = key.value if isinstance(key, yaml.ScalarNode) else "…"
                self._note(
                    "wrong_type", f"the key {text} is no text", key, hint="Put it in quotes."
                )
            elif key.value in seen:
                hint = f"It stands in line {seen[key.value]} already: keep one of the two."
                self._note(
                    "duplicate_key", f"the key {key.value!r} stands here again", key, hint=hint
                )
            else:
                seen[key.value] = key.start_mark.line + 1

    def _check_scalar(self, node: yaml.ScalarNode) -> None:
        if "${" in ENVIRONMENT.sub("", node.value):
            hint = (
                "Write the value itself; only ${oc.env:NAME} is read, in tracking, judges, paths."
            )
            self._note("interpolation", f"{node.value!r} holds an interpolation", node, hint=hint)
        elif node.value == "???" and not node.style:
            self._note(
                "missing_key", "the value is still to be written (???)", node, hint="Write it."
            )
        elif node.tag.endswith(":float") and not math.isfinite(_number(node.value)):
            hint = "Write a finite number, or null for no limit."
            self._note("out_of_range", f"{node.value} is not finite", node, hint=hint)

    def _note(self, code: str, message: str, node: yaml.Node, *, hint: str = "") -> None:
        self._problems.append(_found(code, message, node.start_mark, shown=self._shown, hint=hint))


def _number(text: str) -> float:
    try:
        return float(text.replace("_", "").replace(".inf", "inf").replace(".nan", "nan").lower())
    except ValueError:
        return 0.0  # a base-60 number such as 1:30.5; finite
