"""A prompt of the recipe author's own, and the place in it for the question."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Protocol

from agentrecipes.components import FileName
from agentrecipes.datasets.protocol import Dataset
from agentrecipes.errors import Problem
from agentrecipes.numerics.answer_text import normalise
from agentrecipes.records import Task

Text = Annotated[str, FileName("text")]  # as it is written, or a file's
QUESTION = "{question}"  # where a prompt takes the question
SHORTEST_TOLD = 4  # characters of a gold answer that is looked for; "no" stands in many prompts


class Told(Protocol):
    """What every task is told besides its question."""

    @property
    def system(self) -> str | None: ...
    @property
    def prompt(self) -> str | None: ...


def options(task: Task) -> str:
    """The task's options, one a line and each after a newline: ``\\nA) Rome``; "" without any."""
    listed = task.data.get("options")
    if not isinstance(listed, Mapping):
        return ""
    return "".join(f"\n{letter}) {text}" for letter, text in listed.items())


def prompt_problems(prompt: str | None) -> Iterable[Problem]:
    """The problem of a prompt that has no place for the question."""
    if prompt is not None and QUESTION not in prompt:
        yield Problem(
            code="no_question",
            path="prompt",
            message="the prompt has no place for the question",
            suggestion=f"Write {QUESTION} where it belongs.",
        )


def told_answers(told: Told, dataset: Dataset) -> Iterable[Problem]:
    """A warning for a prompt of the author's own that holds the gold answer of a task."""
    for field in ("system", "prompt"):
        text = f" {normalise(getattr(told, field) or '')} "
        if not text.strip():
            continue
        for task in dataset.tasks("train"):
            golds = [normalise(gold) for gold in task.gold_answers]
            if any(len(gold) >= SHORTEST_TOLD and f" {gold} " in text for gold in golds):
                yield Problem(
                    code="answer_in_prompt",
                    path=field,
                    message=f"it tells the gold answer {task.gold_answers[0]!r} of {task.id!r}",
                    suggestion="Take another example.",
                    severity="warning",
                )
                break
