"""What observations show of what a task needs: its gold answers, or its supporting passages."""

from __future__ import annotations

from typing import Literal

from agentrecipes.records import Task
from agentrecipes.rewards.normalisation import holds, normalise, tellable

Needed = Literal["gold", "supporting"]
FIELDS: dict[Needed, str] = {"gold": "golden_answers", "supporting": "supporting_titles"}


def needed(task: Task, of: Needed) -> list[str]:
    """The normalised texts to look for; empty where the task does not bring them."""
    if of == "gold":
        return tellable(task.gold_answers)
    titles = task.data.get(FIELDS[of], ())
    return tellable([str(title) for title in titles]) if isinstance(titles, list | tuple) else []


def shown(observation: str, texts: list[str]) -> set[str]:
    """Those of the normalised `texts` that an observation has as whole words."""
    seen = normalise(observation)
    return {text for text in texts if holds(seen, text, whole_words=True)}
