"""Agents that call tools without a model: one follows a list of calls, one draws them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from agentrecipes.environments.protocol import Agent
from agentrecipes.errors import RecipeError
from agentrecipes.records import Action, Call, Task

WORD = re.compile(r"[^\W_]+")


def listed_calls(task: Task) -> list[list[Call]]:
    """The calls that ``Task.data["calls"]`` lists by turn: ``[[{"tool": …, "arguments": …}]]``.

    Raises:
        RecipeError: it lists something else.
    """
    try:
        return [
            [Call(str(one["tool"]), dict(one["arguments"])) for one in turn]
            for turn in task.data.get("calls", ())
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise RecipeError(
            f"the task {task.id!r}: 'calls' is no list of turns. Write for each turn a list of "
            '{"tool": NAME, "arguments": {…}}, or leave calls out'
        ) from error


def follower(task: Task, *, calls_per_turn: int, max_turns: int) -> Agent:
    """Makes the task's listed calls turn by turn, then gives its gold answer."""
    turns = [
        tuple(turn[start : start + calls_per_turn])
        for turn in listed_calls(task)
        for start in range(0, len(turn), calls_per_turn)
    ]
    left = iter(turns[: max_turns - 1])
    answer = task.gold_answers[0] if task.gold_answers else "unknown"

    def play(observation: str | None) -> Action:
        calls = next(left, None)
        return Action("done", answer=answer) if calls is None else Action("next", calls)

    return play


def drawer(task: Task, schemas: Sequence[Mapping[str, Any]], random: Random) -> Agent:
    """Calls and answers at random with words that it was shown; never looks at gold answers."""
    words = WORD.findall(task.question) or ["nothing"]

    def play(observation: str | None) -> Action:
        words.extend(WORD.findall(observation or ""))
        if random.random() < 0.5:
            return Action("done", answer=random.choice(words))
        schema = random.choice(schemas)
        arguments = _object(schema.get("parameters", {}), words, random)
        return Action("next", (Call(str(schema["name"]), arguments),))

    return play


def _object(schema: Mapping[str, Any], words: Sequence[str], random: Random) -> dict[str, Any]:
    needed = schema.get("required", ())
    return {
        name: _value(about, words, random)
        for name, about in schema.get("properties", {}).items()
        if name in needed or random.random() < 0.5
    }


def _value(schema: Mapping[str, Any], words: Sequence[str], random: Random) -> Any:
    """A value of the schema's type; its bounds are kept where they are simple."""
    if "enum" in schema:
        return random.choice(list(schema["enum"]))
    if "anyOf" in schema:
        return _value(random.choice(list(schema["anyOf"])), words, random)
    kind = schema.get("type", "string")
    kind = kind if isinstance(kind, str) else random.choice(list(kind))
    if kind in ("integer", "number"):
        low = int(schema.get("minimum", 0))
        return random.randint(low, int(schema.get("maximum", low + 100)))
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "array":
        items = schema.get("items", {})
        return [_value(items, words, random) for _ in range(random.randint(1, 2))]
    if kind == "object":
        return _object(schema, words, random)
    return None if kind == "null" else random.choice(words)
