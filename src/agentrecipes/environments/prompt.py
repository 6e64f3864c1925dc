"""A prompt of the recipe author's own, and the place in it for the question."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from agentrecipes.components import FileName
from agentrecipes.errors import Problem

Text = Annotated[str, FileName("text")]  # as it is written, or a file's
QUESTION = "{question}"  # where a prompt takes the question


def prompt_problems(prompt: str | None) -> Iterable[Problem]:
    """The problem of a prompt that has no place for the question."""
    if prompt is not None and QUESTION not in prompt:
        yield Problem(
            code="no_question",
            path="prompt",
            message="the prompt has no place for the question",
            suggestion=f"Write {QUESTION} where it belongs.",
        )
