"""Evaluating a model outside of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from agentrecipes.components import build
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.schema import Evaluation
from agentrecipes.training.evaluation import evaluate
from agentrecipes.training.export import weights
from agentrecipes.training.policy import Policy
from agentrecipes.training.position import Position, Sampler
from agentrecipes.training.progress import Progress, Silent
from agentrecipes.training.recorder import as_dict


def measure(
    recipe: Recipe,
    wanted: Evaluation,
    *,
    model: Path | None = None,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Evaluation rows, with the summary's keys, of the model in a folder or of the recipe's own.

    Environment and engine are those of the recipe's last stage.
    """
    last = recipe.stages[-1]
    done = 0 if model is None else last.iterations or last.steps or 0
    fields = recipe.stage(len(recipe.stages) - 1, done)
    stage = fields.model_copy(update={"evaluation": wanted})
    torch.set_num_threads(stage.trainer.threads)
    part = (
        recipe.fields.model
        if model is None
        else build("model", {"name": "run", "path": str(model)})
    )
    policy = Policy.build(part, recipe.seed)
    engine = stage.rollout.engine.start(policy.module.model, policy.tokenizer)
    watcher = progress or Silent()
    try:
        engine.load(weights(policy.module), 0)
        sampler = Sampler(engine, policy.chat, recipe.seed, stage.name)
        found = evaluate(stage, sampler, Position(iteration=done), split=wanted.split)
    finally:
        engine.close()
    rows = [as_dict(row) for each in found for row in each.rows]
    for row in rows:
        watcher.evaluation(row)
    return rows
