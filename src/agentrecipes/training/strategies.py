"""Strategies by name: what a recipe says, as what Lightning takes."""

from __future__ import annotations

from typing import Any

from agentrecipes.errors import MissingExtra
from agentrecipes.recipe.schema import Trainer


def strategy(fields: Trainer) -> Any:
    """The Lightning strategy that the recipe names.

    Raises:
        MissingExtra: a DeepSpeed strategy without DeepSpeed.
    """
    if fields.strategy.startswith("deepspeed"):
        raise MissingExtra(
            f"trainer.strategy: {fields.strategy!r} needs DeepSpeed. "
            f"Install it with: pip install 'agentrecipes[deepspeed]'."
        )
    if fields.strategy in ("auto", "single"):
        return "auto"
    return fields.strategy
