"""Random cases of every algorithm: a batch with forked trajectories, fields, and micro-batches."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import torch

from agentrecipes.algorithms.protocol import Algorithm, Outputs
from agentrecipes.components import build, find
from agentrecipes.records import Batch

EIGHTHS = np.arange(-16, 17) / 8
FIELDS: dict[str, list[Any]] = {
    "clip_low": [0.1, 0.2, 0.35, None],
    "clip_high": [0.1, 0.28, 0.5, None],
    "dual_clip": [None, 1.5, 3.0],
    "aggregation": ["token_mean", "sequence_mean", "sequence_sum_norm"],
    "std": ["sample", "population", "none"],
    "epsilon": [1e-6, 1e-4],
    "whiten": [True, False],
    "gamma": [1.0, 0.9],
    "lam": [1.0, 0.8],
    "value_clip": [None, 0.3],
    "value_coefficient": [0.5, 0.7],
    "entropy": [0.0, 0.01],
    "tau_positive": [1.0, 0.7],
    "tau_negative": [1.05, 1.4],
    "step_weight": [1.0, 0.4],
    "at_least": [0.25, 1.0],
    "beta": [0.1, 0.5],
    "importance": [
        None,
        {"cap": 2.0, "level": "token"},
        {"cap": 1.2, "level": "token"},
        {"cap": 1.5, "level": "sequence"},
    ],
    "kl": [
        {},
        *(
            {"place": place, "estimator": estimator, "coefficient": 0.05}
            for place in ("loss", "reward")
            for estimator in ("k1", "k2", "k3")
        ),
    ],
}


@dataclass(frozen=True)
class Case:
    """An algorithm, what it is asked, and the rows of its micro-batches."""

    algorithm: Algorithm
    batch: Batch
    outputs: Outputs
    split: list[list[int]]


def draw_case(name: str, seed: int) -> Case:
    """Number `seed` of an algorithm's cases."""
    random = np.random.default_rng([seed, *name.encode()])
    known = find("algorithm", name).model_fields
    spec = {
        field: values[int(random.integers(len(values)))]
        for field, values in FIELDS.items()
        if field in known
    }
    if spec.get("aggregation") == "sequence_sum_norm":
        spec["max_tokens"] = 11
    algorithm = build("algorithm", {"name": name, **spec})
    batch, outputs = _drawn(seed)
    if hasattr(algorithm, "kl"):
        batch = replace(batch, kl_coefficient=algorithm.kl.in_force({}))
    owner = batch.group[batch.trajectory] if algorithm.needs.whole_groups else batch.trajectory
    return Case(algorithm, batch, outputs, _split(random, owner.numpy()))


def _split(random: np.random.Generator, owner: np.ndarray) -> list[list[int]]:
    """One to three micro-batches; rows of one owner stay together."""
    found = random.permutation(np.unique(owner))
    parts = np.array_split(found, int(random.integers(1, 4)))
    return [np.flatnonzero(np.isin(owner, part)).tolist() for part in parts if len(part)]


@cache
def _drawn(seed: int) -> tuple[Batch, Outputs]:
    """Rows of trajectories of up to four turns, some forked, some turns without action tokens."""
    random = np.random.default_rng([7, seed])
    attempts = [int(n) for n in random.integers(2, 5, size=int(random.integers(1, 4)))]
    group = np.repeat(np.arange(len(attempts)), attempts)
    rows = [(n, row) for n in range(len(group)) for row in _rows(random)]
    width = max(len(row) for _, row in rows)
    mask = np.zeros((len(rows), width), dtype=bool)
    turn_index = np.full(mask.shape, -1)
    for at, (_, row) in enumerate(rows):
        mask[at, : len(row)] = [turn >= 0 for turn in row]
        turn_index[at, : len(row)] = row
    trajectory = np.array([n for n, _ in rows])
    turns = len({(n, turn) for n, row in rows for turn in row if turn >= 0})
    rewards = random.choice(EIGHTHS, size=(len(group), 4)) * (random.random((len(group), 4)) < 0.6)
    if random.random() < 0.3:  # a group of equal attempts
        rewards[group == 0] = rewards[0]
    return _tensors(random, mask, turn_index, (trajectory, group, rewards, float(turns)))


def _rows(random: np.random.Generator) -> list[list[int]]:
    """One trajectory's rows: the turn of each action token, −1 for the others."""
    first = [0] * int(random.integers(1, 4))
    tokens = [first, *([turn] * int(random.integers(0, 4)) for turn in range(1, 4))]
    turns = [
        [place for turn in own for place in (*[-1] * int(random.integers(0, 2)), turn)]
        for own in tokens[: int(random.integers(1, 5))]
    ]
    cut = int(random.integers(1, len(turns) + 1))
    halves = [
        [-1, *(place for turn in half for place in turn)]
        for half in (turns[:cut], turns[cut:])
        if half
    ]
    return [row for row in halves if any(turn >= 0 for turn in row)]


def _tensors(
    random: np.random.Generator, mask: np.ndarray, turn_index: np.ndarray, about: Any
) -> tuple[Batch, Outputs]:
    trajectory, group, rewards, turns = about

    def normal(scale: float) -> torch.Tensor:
        return torch.from_numpy(scale * random.normal(size=mask.shape))

    logp_old = normal(1.0) - 1.0
    weight = torch.from_numpy(random.choice([0.0, 0.3, 1.0], size=mask.shape))
    empty = torch.zeros(0, dtype=torch.float64)
    batch = Batch(
        action_mask=torch.from_numpy(mask),
        logp_old=logp_old,
        logp_rollout=logp_old + normal(0.3),
        logp_ref=logp_old + normal(0.3),
        values_old=normal(1.0),
        advantage=empty,
        value_target=empty,
        token_weight=weight,
        turn_index=torch.from_numpy(turn_index),
        turn_rewards=torch.from_numpy(rewards),
        returns=torch.from_numpy(rewards.sum(axis=1)),
        trajectory=torch.from_numpy(trajectory),
        group=torch.from_numpy(group),
        action_tokens=float(mask.sum()),
        sequences=float(len(group)),
        total_weight=float(weight.sum()),
        kl_coefficient=0.0,
        turns=turns,
        turn_state=torch.from_numpy(random.integers(0, 2, size=rewards.shape)),
    )
    logp = (logp_old + normal(0.4)).requires_grad_()
    return batch, Outputs(logp, normal(1.0).requires_grad_(), normal(1.0).exp())
