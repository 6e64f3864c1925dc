"""Tasks by a field: what a task says there, and what is wrong with a recipe that asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import suggest
from agentrecipes.errors import AgentRecipesError, Problem
from agentrecipes.records import Task

By = Annotated[
    str, Field(min_length=1, description="The task field that tells kinds apart: type, hops, ….")
]
NonNegative = Annotated[float, Field(ge=0.0)]


def value_of(task: Task, by: str) -> Any:
    """What stands in a field of a task; None where the task lacks it."""
    own = {"id": task.id, "question": task.question, "golden_answers": task.gold_answers}
    return own[by] if by in own else task.data.get(by)


def kind_of(task: Task, by: str) -> str:
    """The task's kind as a recipe writes it, ``hops: 2`` as "2"; "" where the field is missing."""
    value = value_of(task, by)
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def training_tasks(stage: Any) -> Sequence[Task]:
    """The stage's tasks; none where they cannot be read, which the reader reports by itself."""
    try:
        tasks: Sequence[Task] = stage.environment.tasks("train")
    except (AttributeError, AgentRecipesError, OSError, ValueError):
        return ()
    return tasks


def field_problems(stage: Any, by: str) -> Iterator[Problem]:
    """A field that no training task has."""
    tasks = training_tasks(stage)
    if tasks and all(value_of(task, by) is None for task in tasks):
        known = {"question", *(key for task in tasks for key in task.data)}
        found = f"no training task has a field {by!r}"
        yield Problem("missing_field", "by", found, suggest(by, known))


def kind_problems(stage: Any, by: str, *, names: Iterable[str], key: str) -> Iterator[Problem]:
    """The first of `names`, which stand at `key`, that no training task is."""
    known = {kind_of(task, by) for task in training_tasks(stage)}
    unknown = sorted(set(names) - known) if known - {""} else []
    if unknown:
        found = f"no training task has {by} {unknown[0]!r}"
        yield Problem("unknown_kind", key, found, suggest(unknown[0], known - {""}))
