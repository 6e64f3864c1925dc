"""Evaluating a model outside of a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from agentrecipes.components import build
from agentrecipes.recipe.load import Recipe
from agentrecipes.training.collecting import Position, Sampler
from agentrecipes.training.evaluation import evaluate
from agentrecipes.training.policy import Policy
from agentrecipes.training.progress import Progress, Silent
from agentrecipes.training.recorder import as_dict


def measure(
    recipe: Recipe,
    *,
    model: Path | None = None,
    progress: Progress | None = None,
    split: str | None = None,
    tasks: int | None = None,
    modes: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Evaluation rows, with the summary's keys, of the model in a folder or of the recipe's own.

    Everything that is not given comes from the last stage of the recipe.
    """
    stage = recipe.stages[-1]
    wanted = stage.evaluation
    if tasks is not None:
        stage = stage.model_copy(update={"evaluation": wanted.model_copy(update={"tasks": tasks})})
    torch.set_num_threads(stage.trainer.threads)
    part = recipe.fields.model if model is None else build("model", {"name": "run", "path": model})
    policy = Policy.build(part, recipe.seed)
    engine = stage.rollout.engine.start(policy.module.model, policy.tokenizer)
    watcher = progress or Silent()
    try:
        sampler = Sampler(engine, policy.chat, recipe.seed, stage.name)
        at = Position(iteration=stage.iterations or stage.steps or 0)
        found = evaluate(
            stage, sampler, at, split=split or wanted.split, modes=modes or wanted.modes
        )
    finally:
        engine.close()
    rows = [as_dict(row) for each in found for row in each.rows]
    for row in rows:
        watcher.evaluation(row)
    return rows
