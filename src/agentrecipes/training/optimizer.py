"""One optimizer with parameter groups, and a learning rate that is a function of the step alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from agentrecipes.recipe.schema import Optimizer
from agentrecipes.training.muon import Muon


def build(
    fields: Optimizer, groups: Sequence[Mapping[str, Any]], tables: Sequence[Tensor] = ()
) -> torch.optim.Optimizer:
    """The optimizer over ``{"params", "label"}`` groups; "value" has a rate of its own.

    `tables` are weights by token, embeddings and output head: no matrices to Muon.
    """
    rates = {"value": fields.value_learning_rate or fields.learning_rate}
    made = [
        {
            "params": list(g["params"]),
            "label": g["label"],
            "peak": rates.get(g["label"], fields.learning_rate),
            **({"weight_decay": 0.0} if g["label"] == "own" else {}),
        }
        for g in groups
    ]
    for group in made:
        group["lr"] = group["peak"]
    if fields.name == "sgd":
        return torch.optim.SGD(made, lr=fields.learning_rate, weight_decay=fields.weight_decay)
    kind = torch.optim.AdamW
    if fields.name == "muon":
        kind, made = Muon, list(_by_matrices(made, tables))
    return kind(
        made,
        lr=fields.learning_rate,
        betas=fields.betas,
        weight_decay=fields.weight_decay,
        fused=True,
    )


def _by_matrices(
    groups: Sequence[Mapping[str, Any]], tables: Sequence[Tensor]
) -> Iterator[dict[str, Any]]:
    """Each group as up to two: its matrices, which Muon moves, and the rest."""
    apart = {id(table) for table in tables}
    for group in groups:
        maps = group["label"] != "value"  # one output has no directions to balance
        for matrices in (True, False):
            params = [
                own
                for own in group["params"]
                if (maps and own.dim() == 2 and id(own) not in apart) == matrices
            ]
            if params:
                yield {**group, "params": params, "matrices": matrices}


def factor(fields: Optimizer, step: int, total: int) -> float:
    """Share of the peak rate in `step` (from 0) of a stage of `total` steps.

    Warm-up is linear and never 0; the decay goes from 1 to ``decay_to`` at the last step.
    """
    if step < fields.warmup_steps:
        return (step + 1) / (fields.warmup_steps + 1)
    if fields.decay == "constant":
        return 1.0
    span = max(total - 1 - fields.warmup_steps, 1)
    done = min((step - fields.warmup_steps) / span, 1.0)
    share = 1.0 - done if fields.decay == "linear" else 0.5 * (1.0 + math.cos(math.pi * done))
    return fields.decay_to + (1.0 - fields.decay_to) * share


def set_rate(optimizer: torch.optim.Optimizer, share: float) -> None:
    """Set every group's rate to its share of the group's peak."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * share
