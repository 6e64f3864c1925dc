"""Turns lines of a file into tasks, and refuses what could never be scored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agentrecipes.errors import RecipeError
from agentrecipes.numerics.answer_text import normalise
from agentrecipes.recipe.lines import rows, unique
from agentrecipes.records import Task

SPLITS = ("train", "dev", "test")
OWN = {"id", "split", "question", "golden_answers"}  # keys that are fields of a task, not its data


def read(files: Sequence[Path]) -> Mapping[str, tuple[Task, ...]]:
    """The tasks of each split. A line without ``split`` is in all of them, under ids of their own.

    Raises:
        RecipeError: a line is no task; the message names it and says why.
    """
    found: dict[str, list[Task]] = {split: [] for split in SPLITS}
    seen: dict[str, str] = {}
    for file in files:
        stem = file.name.partition(".")[0]
        for number, (where, row) in enumerate(rows(file)):
            identity = unique(str(row.get("id", f"{stem}-{number}")), where, seen)
            for split in _splits(row, where):
                shared = "split" not in row and split != "train"
                name = f"{identity}@{split}" if shared else identity
                found[split].append(_task(row, name, split=split, where=where))
    return {split: tuple(tasks) for split, tasks in found.items()}


def common_fields(tasks: Iterable[Task]) -> frozenset[str]:
    """What every one of `tasks` brings, in the words of ``Dataset.fields``."""
    common: set[str] | None = None
    for task in tasks:
        own = {"question", *task.data, *(["golden_answers"] if task.gold_answers else [])}
        common = own if common is None else common & own
    return frozenset(common or ())


def _splits(row: Mapping[str, Any], where: str) -> Sequence[str]:
    if "split" not in row:
        return SPLITS
    if row["split"] not in SPLITS:
        raise RecipeError(
            f"{where}: no split is called {row['split']!r}. Write one of {', '.join(SPLITS)}"
        )
    return (row["split"],)


def _task(row: Mapping[str, Any], identity: str, *, split: str, where: str) -> Task:
    data = {key: value for key, value in row.items() if key not in OWN}
    return Task(identity, split, _question(row, where), _gold(row, where), data)


def _question(row: Mapping[str, Any], where: str) -> str:
    """The question; of a written conversation, its first turn's messages."""
    question = row.get("question")
    while isinstance(question, list) and question and isinstance(question[0], list):
        question = question[0]
    if isinstance(question, list):
        said = [message.get("content") for message in question if isinstance(message, dict)]
        question = "\n".join(text for text in said if isinstance(text, str))
    if not isinstance(question, str) or not question.strip():
        raise RecipeError(f"{where}: no question. Write one as text under 'question'")
    return question


def _gold(row: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """The gold answers, else the one ``answer``; none at all is allowed."""
    golds = row.get("golden_answers", row.get("answer", ()))
    golds = [golds] if isinstance(golds, str | int | float) else golds
    if not isinstance(golds, list | tuple) or not all(
        isinstance(gold, str | int) for gold in golds
    ):
        raise RecipeError(f"{where}: golden_answers must be a list of texts. Check {golds!r}")
    golds = [_told(gold, row.get("options")) for gold in golds]
    for gold in golds:
        if not normalise(str(gold)):
            raise RecipeError(
                f"{where}: the gold answer {gold!r} is empty once punctuation and articles are "
                "gone, so that any empty answer would match it. Remove it"
            )
    return tuple(dict.fromkeys(str(gold) for gold in golds))


def _told(gold: str | int, options: Any) -> str | int:
    """A gold answer; the letter of an option that is an article, ``A``, by the option's text."""
    if isinstance(options, Mapping) and str(gold) in options and not normalise(str(gold)):
        return str(options[str(gold)])
    return gold
