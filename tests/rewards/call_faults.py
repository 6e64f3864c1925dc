"""Calls around a case's gold ones: accepted ones, and each with one fault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentrecipes.records import Call, Task

Calls = tuple[Call, ...]


def gold(task: Task) -> Calls:
    return tuple(Call(c["tool"], c["arguments"]) for turn in task.data["calls"] for c in turn)


def variants(task: Task) -> Iterator[Calls]:
    """The gold calls, then what differs from them in one place; the same for the same task."""
    calls = gold(task)
    yield calls
    yield ()
    yield (*calls, Call("no_such_function", {}))
    if not calls:
        return
    yield calls[::-1]
    yield (*calls, calls[0])
    yield calls[1:]
    for place, call in enumerate(calls[:2]):
        for changed in changes(call, task):
            yield (*calls[:place], changed, *calls[place + 1 :])


def changes(call: Call, task: Task) -> Iterator[Call]:
    """One call with one thing changed."""
    yield Call(call.tool + "_x", call.arguments)
    yield Call(call.tool, {**call.arguments, "no_such_argument": 1})
    for key, value in call.arguments.items():
        yield Call(call.tool, {k: v for k, v in call.arguments.items() if k != key})
        for other in others(value):
            yield Call(call.tool, {**call.arguments, key: other})
    for wanted in task.data["ground_truth"]:
        for key, accepted in wanted.get(call.tool, {}).items():
            for value in accepted:
                yield Call(call.tool, {**call.arguments, key: value})


def others(value: Any) -> Iterator[Any]:
    """Values like `value` and unlike it, of its type and of others."""
    yield from (str(value), [value], 0, "", None)
    if isinstance(value, str):
        yield from (value.upper(), f" {value}.", value[::-1], value.replace("'", '"'))
    elif isinstance(value, bool):
        yield from (not value, int(value))
    elif isinstance(value, int | float):
        yield from (float(value), int(value), value + 1, -value)
    elif isinstance(value, list):
        yield from ([], value[::-1], value[:-1], [*value, "x"], [str(x).upper() for x in value])
    elif isinstance(value, Mapping):
        yield from ({}, {**value, "more": 1}, {k: str(v).upper() for k, v in value.items()})
        for key in value:
            yield {k: v for k, v in value.items() if k != key}
