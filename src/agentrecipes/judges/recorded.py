"""Replies from a file: what was judged once is judged again without a model and a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from agentrecipes.components import Component, FileName, component
from agentrecipes.errors import RecipeError, TaskFailed
from agentrecipes.judges.kept import prompt_hash
from agentrecipes.recipe.lines import rows


@component("judge")
class Recorded(Component):
    """Replays lines of ``{"prompt": …, "reply": …}``; a prompt that is not there has no reply.

    The lines are those that other judges keep in their `cache`, joined into one file, or written
    by hand. The same prompt with two different replies is refused: nobody could say which counts.
    """

    path: Annotated[str, FileName("data")]  # file of lines of JSON, .jsonl or .jsonl.gz

    asks_at_once: ClassVar[int] = 1
    timeout_seconds: ClassVar[float] = float("inf")

    def identity(self) -> Mapping[str, Any]:
        """The file's name; a changed file is another input of the run, see the lock."""
        return {"judge": "recorded", "model": Path(self.path).name}

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """One reply per prompt, in their order.

        Raises:
            TaskFailed: the file has no reply to a prompt.
            RecipeError: the file cannot be read.
        """
        path = Path(self.path)
        replies = _replies(path, path.stat().st_mtime_ns if path.exists() else 0)
        missing = [prompt for prompt in prompts if prompt_hash(prompt) not in replies]
        if missing:
            raise TaskFailed("the recording has no reply to this prompt")
        return [replies[prompt_hash(prompt)] for prompt in prompts]


@lru_cache(maxsize=8)
def _replies(path: Path, changed: int) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for where, row in rows(path):
        if "prompt" not in row or "reply" not in row:
            wanted = 'lines are {"prompt": …, "reply": …}'
            raise RecipeError(f"{where}: no recorded reply: {wanted}")
        reply = str(row["reply"])
        if found.setdefault(prompt_hash(str(row["prompt"])), reply) != reply:
            raise RecipeError(f"{where}: this prompt has two different replies; keep one of them")
    return found
