"""Written transcripts, one JSON object a line, as views that rewards can score.

``{"id", "task": {"question", "golden_answers", …}, "turns": [{"action": text, "observation": text
or null}]}``; further fields of ``task`` become its data. A turn may say how many ``tokens`` its
action had, for rewards that count them; they count if every turn says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from agentrecipes.environments.protocol import Environment
from agentrecipes.errors import Problem, RecipeError
from agentrecipes.records import Stop, Task
from agentrecipes.rewards.protocol import View


def read_transcripts(
    source: Path | Iterable[Mapping[str, Any]], environment: Environment
) -> list[tuple[str, View]]:
    """(id, view) of each transcript, its actions read by the environment's protocol.

    `source` is a JSONL file, or the objects themselves.

    Raises:
        RecipeError: the file or a line cannot be read; every broken line is named.
    """
    problems: list[Problem] = []
    found = []
    for place, data in _lines(source, problems):
        fault = _fault(data)
        if fault is None:
            found.append((str(data.get("id", place.line)), view_of(data, environment)))
        else:
            problems.append(Problem("transcript", "", fault, file=place.file, line=place.line))
    if problems:
        raise RecipeError(problems)
    return found


def view_of(data: Mapping[str, Any], environment: Environment) -> View:
    """The view of a well-formed transcript.

    It ends as its last action says: with an answer, unreadable, or because the turns were over.
    """
    turns = data["turns"]
    actions = [environment.protocol.parse(turn["action"]) for turn in turns]
    last = actions[-1] if actions else None
    stop = Stop.VOID
    if last is not None:
        stop = Stop.TURNS if last.valid else Stop.INVALID
        stop = Stop.ANSWERED if last.answer is not None else stop
    return View(
        task=task_of(data["task"], str(data.get("id", ""))),
        actions=tuple(turn["action"] for turn in turns),
        observations=tuple(turn.get("observation") or "" for turn in turns),
        calls=tuple(action.calls for action in actions),
        valid=tuple(action.valid for action in actions),
        answer=last.answer if last is not None else None,
        stop=stop,
        tokens=tuple(turn["tokens"] for turn in turns) if _counted(turns) else None,
    )


def _counted(turns: Iterable[Mapping[str, Any]]) -> bool:
    return all(turn.get("tokens") is not None for turn in turns)


def task_of(fields: Mapping[str, Any], name: str) -> Task:
    """The task that a transcript's ``task`` describes."""
    own = {"id", "split", "question", "golden_answers"}
    return Task(
        id=str(fields.get("id", name)),
        split=str(fields.get("split", "test")),
        question=str(fields.get("question", "")),
        gold_answers=tuple(map(str, fields.get("golden_answers", ()))),
        data={key: value for key, value in fields.items() if key not in own},
    )


def _lines(
    source: Path | Iterable[Mapping[str, Any]], problems: list[Problem]
) -> Iterator[tuple[Problem, Any]]:
    """Each object with its place; what is no JSON goes to `problems`."""
    if not isinstance(source, Path):
        for number, data in enumerate(source, start=1):
            yield Problem("", "", "", line=number), data
        return
    try:
        text = source.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"{source}: the transcripts cannot be read: {error}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        place = Problem("transcript", "", "", file=str(source), line=number)
        if not line.strip():
            continue
        try:
            yield place, json.loads(line)
        except ValueError as error:
            problems.append(
                Problem(
                    "transcript",
                    "",
                    f"this line is not JSON: {error}",
                    file=place.file,
                    line=number,
                )
            )


def _fault(data: Any) -> str | None:
    """What is wrong with a transcript, or None."""
    if not isinstance(data, Mapping):
        return f"a transcript is an object with id, task and turns, but this is {_short(data)}"
    if not isinstance(data.get("task"), Mapping):
        return f"'task' must be an object, but is {_short(data.get('task'))}"
    gold = data["task"].get("golden_answers", ())
    if isinstance(gold, str) or not isinstance(gold, list | tuple):
        return f"'task.golden_answers' must be a list, but is {_short(gold)}"
    turns = data.get("turns")
    if not isinstance(turns, list | tuple):
        return f"'turns' must be a list, but is {_short(turns)}"
    for number, turn in enumerate(turns):
        if not isinstance(turn, Mapping) or not isinstance(turn.get("action"), str):
            return f"'turns[{number}]' needs an 'action' with text, but is {_short(turn)}"
        if not isinstance(turn.get("observation"), str | None):
            return f"'turns[{number}].observation' must be text or null"
        tokens = turn.get("tokens")
        if tokens is not None and (type(tokens) is not int or tokens < 0):
            return f"'turns[{number}].tokens' must be a whole number, but is {_short(tokens)}"
    return None


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
