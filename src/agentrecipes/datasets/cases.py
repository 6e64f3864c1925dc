"""Cases of the Berkeley Function Calling Leaderboard as tasks, and what their gold calls are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentrecipes.errors import RecipeError
from agentrecipes.recipe.lines import rows, unique
from agentrecipes.records import Task

SPLITS = ("train", "dev", "test")


@lru_cache(maxsize=8)
def cases(path: Path) -> Mapping[str, tuple[Task, ...]]:
    """The tasks of each split in a file, or in a folder of files called by their split.

    A line without ``split`` in a file is in all splits, under ids of their own. Conversations of
    several turns, which need the APIs that they call, are left out.

    Raises:
        RecipeError: a line is no case; the message names it and says why.
    """
    files = [path / f"{split}.jsonl" for split in SPLITS] if path.is_dir() else [path]
    found: dict[str, list[Task]] = {split: [] for split in SPLITS}
    seen: dict[str, str] = {}
    for file in files:
        if path.is_dir() and not file.is_file():
            continue
        for where, row in rows(file):
            if len(row.get("question", ())) > 1 or "multi_turn" in str(row.get("category", "")):
                continue
            identity = unique(str(row.get("id", where)), where, seen)
            splits = SPLITS if row.get("split") is None else (row["split"],)
            for split in splits:
                if split not in found:
                    hint = f"Write one of {', '.join(SPLITS)}"
                    raise RecipeError(f"{where}: no split is called {split!r}. {hint}")
                name = identity if len(splits) == 1 else f"{identity}@{split}"
                found[split].append(_task(row, name, split=split, where=where))
    return {split: tuple(tasks) for split, tasks in found.items()}


def _task(row: Mapping[str, Any], identity: str, *, split: str, where: str) -> Task:
    category, functions = row.get("category"), row.get("function")
    if not isinstance(category, str):
        raise RecipeError(f"{where}: no category. Write BFCL's, such as simple_python")
    if not isinstance(functions, list) or not all(map(_is_function, functions)):
        raise RecipeError(f"{where}: 'function' is no list of functions with name and parameters")
    messages = _messages(row.get("question"), where)
    gold, thought = row.get("ground_truth") or [], row.get("thought")
    if not gold and "relevance" not in category:
        raise RecipeError(f"{where}: a case of {category} needs its ground_truth")
    task = make((identity, split), messages, category=category, functions=functions, gold=gold)
    return task if thought is None else thinking(task, str(thought))


def thinking(task: Task, thought: str) -> Task:
    """The task with what a teacher thought before the gold calls."""
    return replace(task, data={**task.data, "thought": thought})


def make(
    name: tuple[str, str],
    messages: Sequence[tuple[str, str]],
    *,
    category: str,
    functions: Sequence[Mapping[str, Any]],
    gold: Sequence[Mapping[str, Any]],
) -> Task:
    """A case as a task; `name` is its id and split, a message (role, content)."""
    question = "\n".join(content for role, content in messages if role == "user")
    data = {
        "type": category,
        "category": category,
        "messages": tuple(messages),
        "functions": tuple(functions),
        "ground_truth": tuple(gold),
        "calls": ([_gold_call(one, functions) for one in gold],) if gold else (),
    }
    return Task(name[0], name[1], question, (), data)


def _is_function(one: Any) -> bool:
    return isinstance(one, dict) and "name" in one and isinstance(one.get("parameters"), dict)


def _messages(question: Any, where: str) -> list[tuple[str, str]]:
    """The messages of the only turn."""
    turn = question[0] if isinstance(question, list) and question else question
    turn = [{"role": "user", "content": turn}] if isinstance(turn, str) else turn
    try:
        messages = [(str(one["role"]), str(one["content"])) for one in turn]
    except (KeyError, TypeError):
        messages = []
    if not any(role == "user" and content.strip() for role, content in messages):
        raise RecipeError(f"{where}: no question. Write messages with role and content")
    return messages


def _gold_call(wanted: Mapping[str, Any], functions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The call with the first accepted value of every argument.

    An argument whose first value is "" is left out, unless the function needs it.
    """
    [(name, accepted)] = wanted.items()
    about: Mapping[str, Any] = next(
        (one["parameters"] for one in functions if one["name"] == name), {}
    )
    needed = about.get("required", ())
    arguments = {}
    for key, own in accepted.items():
        values = [value for value in own if value != ""]
        if values and (own[0] != "" or key in needed):
            arguments[key] = _first(values[0])
    return {"tool": name, "arguments": arguments}


def _first(value: Any) -> Any:
    """An accepted value itself: of a mapping, the first that is accepted under each key."""
    if isinstance(value, list):
        return [_first(one) for one in value]
    if not isinstance(value, dict):
        return value
    firsts = {key: own[0] for key, own in value.items() if own and own[0] != ""}
    return {key: _first(one) for key, one in firsts.items()}
