"""Scalars that change with the iteration, written in YAML where a plain scalar could stand.

``{schedule: linear, from: 0.5, to: 0, over: 200}`` goes from 0.5 at iteration 0 to 0 at iteration
200 and stays there. A schedule depends on the iteration alone, so that a resume cannot shift it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

KEYS = {
    "constant": {"value"},
    "linear": {"from", "to", "over"},
    "cosine": {"from", "to", "over"},
    "steps": {"values", "every"},
}


def is_schedule(value: object) -> bool:
    """Whether a YAML value is a schedule: a mapping with the key ``schedule``."""
    return isinstance(value, Mapping) and "schedule" in value


def fault(schedule: Mapping[str, Any]) -> str | None:
    """What is wrong with a schedule, in the author's words, or None."""
    kind = schedule["schedule"]
    if not isinstance(kind, str) or kind not in KEYS:
        return f"no schedule is called {kind!r}; known are {', '.join(sorted(KEYS))}"
    given = set(schedule) - {"schedule"}
    if missing := sorted(KEYS[kind] - given):
        return f"the {kind} schedule lacks {', '.join(missing)}"
    if unknown := sorted(given - KEYS[kind]):
        return f"the {kind} schedule has no {', '.join(map(str, unknown))}"
    for key in KEYS[kind] & {"over", "every"}:
        if (
            isinstance(schedule[key], bool)
            or not isinstance(schedule[key], int)
            or schedule[key] < 1
        ):
            return f"{key} must be a whole number of iterations from 1, but got {schedule[key]!r}"
    for key in KEYS[kind] & {"from", "to", "value"}:
        if isinstance(schedule[key], bool) or not isinstance(schedule[key], int | float):
            return f"{key} must be a number, but got {schedule[key]!r}"
    if kind == "steps" and not (isinstance(schedule["values"], list) and schedule["values"]):
        return f"values must be a list of at least one value, but got {schedule['values']!r}"
    return None


def value_at(schedule: Mapping[str, Any], iteration: int) -> Any:
    """The plain value in `iteration`, counted from 0 at the start of the stage."""
    kind = schedule["schedule"]
    if kind == "constant":
        return schedule["value"]
    if kind == "steps":
        values = schedule["values"]
        return values[min(iteration // schedule["every"], len(values) - 1)]
    start, end = schedule["from"], schedule["to"]
    share = min(iteration / schedule["over"], 1.0)
    if kind == "cosine":
        share = 0.5 * (1.0 - math.cos(math.pi * share))
    value = start + (end - start) * share
    return round(value) if isinstance(start, int) and isinstance(end, int) else value


def in_fractions(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule of a field that takes fractions: from 1 to 0 it passes 0.5, and does not round.

    Of a whole-number field the ends stay whole numbers, and so does what lies between them.
    """

    def fraction(value: Any) -> Any:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return float(value) if whole else value

    changed = {key: fraction(schedule[key]) for key in ("from", "to", "value") if key in schedule}
    if "values" in schedule:
        changed["values"] = [fraction(value) for value in schedule["values"]]
    return {**schedule, **changed}


def extremes(schedule: Mapping[str, Any]) -> list[Any]:
    """The values whose validity decides that of the whole schedule."""
    if schedule["schedule"] == "constant":
        return [schedule["value"]]
    if schedule["schedule"] == "steps":
        return list(schedule["values"])
    return [schedule["from"], schedule["to"]]


def turning(schedule: Mapping[str, Any]) -> list[int]:
    """The iterations in which a schedule has its extremes; the first one is 0."""
    if schedule["schedule"] == "constant":
        return [0]
    if schedule["schedule"] == "steps":
        return [place * schedule["every"] for place in range(len(schedule["values"]))]
    return [0, schedule["over"]]


def find(
    data: object, path: tuple[str | int, ...] = ()
) -> Iterator[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Every schedule inside plain data, with its path."""
    if isinstance(data, Mapping):
        if is_schedule(data):
            yield path, data
            return
        for key, value in data.items():
            yield from find(value, (*path, key))
    elif isinstance(data, list):
        for index, value in enumerate(data):
            yield from find(value, (*path, index))


def resolve(data: Any, iteration: int) -> Any:
    """A copy of plain data in which every schedule is its value in `iteration`."""
    if isinstance(data, Mapping):
        if is_schedule(data):
            return value_at(data, iteration)
        return {key: resolve(value, iteration) for key, value in data.items()}
    if isinstance(data, list):
        return [resolve(value, iteration) for value in data]
    return data
