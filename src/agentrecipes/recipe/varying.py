"""Schedules in a stage: where they may stand, and whether every value they take is allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from agentrecipes import schedules
from agentrecipes.errors import Problem
from agentrecipes.recipe.draft import STAGE
from agentrecipes.recipe.positions import Loc, Node, plain, put, written
from agentrecipes.recipe.problems import spot

FIXED = (
    ("trainer",),
    ("evaluation",),
    ("steps",),
    ("iterations",),
    ("rollout", "tasks"),
    ("rollout", "group_size"),
    ("rollout", "engine"),
    ("rollout", "concurrency"),
)
"""What is built or allocated once a stage, and so cannot change with the iteration."""


def misplaced(tree: Node, data: Any) -> Iterator[tuple[Loc, Problem]]:
    """Schedules in fields that cannot change, and malformed ones."""
    for loc, schedule in schedules.find(data):
        at = spot(tree, STAGE, loc)
        if loc[-1] == "name" or any(loc[: len(fixed)] == fixed for fixed in FIXED):
            found = "a schedule cannot stand here: the value must be the same in all iterations"
            yield loc, at.problem(Problem("bad_schedule", "", found, "Write one value."))
        elif (fault := schedules.fault(schedule)) is not None:
            hint = "Write for example `{schedule: linear, from: 1.0, to: 0.1, over: 100}`."
            yield loc, at.problem(Problem("bad_schedule", "", fault, hint))


def without(tree: Node, locs: Sequence[Loc]) -> Node:
    """The tree without schedules that may not stand, to find what else is wrong with it.

    A part's name is kept as its first value: without it nothing of the part could be checked.
    """
    for loc in locs:
        node = spot(tree, STAGE, loc).node
        values = [
            v for key in ("value", "from", "values") if (v := plain(node).get(key)) is not None
        ]
        first = values[0][0] if values and isinstance(values[0], list) and values[0] else None
        first = values[0] if first is None and values else first
        tree = put(tree, loc, None if first is None else written(first, node.place, node.path))
    return tree


def extreme_problems(
    tree: Node, data: Any, build: Callable[[Node], Sequence[Problem]]
) -> Iterator[Problem]:
    """Problems of values that a schedule takes later, each at the schedule; others at iteration 0.

    `build` gives the problems of a stage without schedules.
    """
    found = list(schedules.find(data))
    for loc, schedule in found:
        start = schedules.value_at(schedule, 0)
        for value in _later(schedule):
            if value == start and type(value) is type(start):
                continue
            trial = at_start(tree, found)
            place = spot(tree, STAGE, loc)
            trial = put(trial, loc, written(value, place.node.place, place.node.path))
            problems = list(build(trial))
            yield from problems
            if problems:
                break


def at_start(tree: Node, found: Sequence[tuple[Loc, Mapping[str, Any]]]) -> Node:
    """The tree with each schedule as its value at iteration 0, in the schedule's place."""
    for loc, schedule in found:
        node = spot(tree, STAGE, loc).node
        value = written(schedules.value_at(schedule, 0), node.place, node.path)
        tree = put(tree, loc, Node(value.value, node.place, node.path, node.key))
    return tree


def _later(schedule: Mapping[str, Any]) -> list[Any]:
    """The extremes, and the first value in between: a fraction, perhaps, of whole ends."""
    return [*schedules.extremes(schedule), schedules.value_at(schedule, 1)]
