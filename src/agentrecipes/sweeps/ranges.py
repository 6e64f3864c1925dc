"""Each value that a sweep file names, held to the recipe's own check."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentrecipes.errors import Problem
from agentrecipes.recipe.load import check as check_recipe
from agentrecipes.recipe.positions import Loc, Node, plain
from agentrecipes.sweeps.marks import at
from agentrecipes.sweeps.space import Entry, Space, override, overrides

OF_THE_PATH = {"unknown_key", "unknown_stage", "bad_override", "no_effect"}  # whatever the value
MOST_PAIRS = 40  # checks of an end with a choice of another entry; each takes some 70 ms


def fixed(tree: Node, source: Path, *, profile: str | None) -> tuple[list[str], list[Problem]]:
    """What ``set`` sets, as overrides, and what is wrong with it."""
    node = tree.items.get("set")
    values: Mapping[str, Any] = plain(node) if node is not None and node.items else {}
    texts = overrides(values)
    _, found = check_recipe(source, texts, profile=profile)
    problems = []
    for path, text in zip(values, texts, strict=True):
        mine = [problem for problem in found if _names(problem, text)]
        problems += [_moved(tree, ("set", path), problem, text=text) for problem in mine]
    return texts, problems


def of_the_space(
    tree: Node, space: Space, source: Path, *, texts: Sequence[str], profile: str | None
) -> list[Problem]:
    """What the recipe's check says about each end of each entry, wherever the entry is asked.

    Then each end with each choice of another entry: a pair that the recipe refuses is a warning,
    because a third value may allow it. A trial that is refused fails without training.
    """
    problems: dict[tuple[str, int | None, int | None], Problem] = {}

    def hold(
        entry: Entry, at_end: tuple[Loc, Any], situation: Mapping[str, Any], severity: str
    ) -> None:
        loc, value = at_end
        text = override(entry.path, value)
        given = [*texts, *overrides(situation), text]
        _, found = check_recipe(source, given, profile=profile)
        for problem in found:
            if problem.severity == "error":
                told = _moved(tree, loc, problem, text=text, situation=situation)
                told = replace(told, severity=severity)
                problems.setdefault((told.path, told.line, told.column), told)

    for entry in space.entries:
        for end in _ends(entry):
            for situation in space.situations(entry):
                hold(entry, end, situation, "error")
    if not problems:
        for entry, end, situation in itertools.islice(_pairs(space), MOST_PAIRS):
            hold(entry, end, situation, "warning")
    return list(problems.values())


def _pairs(space: Space) -> Iterator[tuple[Entry, tuple[Loc, Any], dict[str, Any]]]:
    for entry, other in itertools.permutations(space.entries, 2):
        if other.kind != "choice" or other.when or other.path in entry.when:
            continue
        for end, choice in itertools.product(_ends(entry), other.choices):
            yield entry, end, {**space.situations(entry)[0], other.path: choice}


def _ends(entry: Entry) -> Iterator[tuple[Loc, Any]]:
    for index, value in enumerate(entry.ends()):
        yield ("space", entry.path, entry.kind, index), value


def _names(problem: Problem, text: str) -> bool:
    return f"(in the override {text!r})" in problem.message


def _moved(
    tree: Node, loc: Loc, problem: Problem, *, text: str, situation: Mapping[str, Any] | None = None
) -> Problem:
    """A problem of the recipe as one of the sweep file, at the value that brought it."""
    message = problem.message.partition(" (in the override ")[0]
    if not _names(problem, text):  # what the value breaks elsewhere in the recipe
        message = f"with this value {problem.path}: {message}"
    if situation:
        held = ", ".join(overrides(situation))
        message = f"{message} (where {held})"
    moved = replace(problem, message=message, file=None, line=None, column=None)
    if problem.code in OF_THE_PATH and _names(problem, text):
        return at(tree, loc[:2], moved, key=True)
    return at(tree, loc, moved)
