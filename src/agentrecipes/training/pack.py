"""Rows packed into strips: what the model sees. ``index`` leads from a strip to logical rows.

A strip holds its rows without padding, and what they begin with in common once. Log-probabilities
are computed once for each scored position and spread to (B, T) by ``index``, so that losses know
nothing of packing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch

from agentrecipes.training.attention import Segments
from agentrecipes.training.rows import Row
from agentrecipes.training.tree import in_order, lone, shared

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Strip:
    """N tokens of B rows; M of them are scored, which means that their log-probability is wanted.

    Example: rows ``1 2 [7]`` and ``3 [8]`` give ``ids 1 2 7 3 8``, ``scored [1, 3]`` (the positions
    that predict), ``targets [7, 8]`` and ``index [[2, 2, 0], [2, 1, 2]]`` (M = 2 stands for none).
    Rows ``1 2 [7]`` and ``1 2 [8]``, if what they share is kept once, give ``ids 1 2 7 8`` and
    ``scored [1, 1]``.
    """

    ids: Tensor  # (1, N) int64
    positions: Tensor  # (1, N) int64, from 0 in each row
    segments: Segments
    scored: Tensor  # (M,) int64: strip position whose output predicts the target
    targets: Tensor  # (M,) int64: token id that is predicted
    index: Tensor  # (B, T) int64: which scored position is token t of row b; M for none

    def to(self, device: torch.device) -> Strip:
        return Strip(
            self.ids.to(device),
            self.positions.to(device),
            self.segments.to(device),
            self.scored.to(device),
            self.targets.to(device),
            self.index.to(device),
        )

    def spread(self, values: Tensor) -> Tensor:
        """(B, T) from (M,): 0 where nothing is scored."""
        return torch.cat([values, values.new_zeros(1)])[self.index]


def strip(rows: Sequence[Row], scored: Sequence[np.ndarray], *, share: bool = True) -> Strip:
    """The strip of B rows; `scored` has a (T,) bool array a row, and never the first token.

    `share`: tokens that rows begin with in common are computed once, where that saves enough.
    """
    own = [row.ids for row in rows]
    tree = shared(own) if share else lone(own)
    starts = np.cumsum([0, *(len(node.ids) for node in tree.nodes)])
    spans = [np.arange(a, b) for a, b in pairwise(starts)]
    ids = np.concatenate([node.ids for node in tree.nodes])
    index = np.full((len(rows), max(len(row) for row in rows)), -1, dtype=np.int64)
    before = np.zeros(len(ids), dtype=np.int64)  # strip position of the token before
    for number, (way, wanted) in enumerate(zip(tree.ways, scored, strict=True)):
        places = np.concatenate([spans[node] for node in way])  # strip position of each token
        before[places[1:]] = places[:-1]
        index[number, np.flatnonzero(wanted[1:]) + 1] = places[1:][wanted[1:]]
    predicted = np.unique(index[index >= 0])  # (M,) strip positions of what is scored
    order = np.full(len(ids) + 1, len(predicted), dtype=np.int64)  # the last entry is -1's
    order[predicted] = np.arange(len(predicted))
    depths = [node.start + np.arange(len(node.ids)) for node in tree.nodes]
    return Strip(
        ids=torch.from_numpy(ids)[None],
        positions=torch.from_numpy(np.concatenate(depths))[None],
        segments=Segments(tree.nodes),
        scored=torch.from_numpy(before[predicted]),
        targets=torch.from_numpy(ids[predicted]),
        index=torch.from_numpy(order[index]),
    )


def partition(
    rows: Sequence[Row], tokens: int, most: int, *, share: bool = True
) -> list[list[int]]:
    """Row numbers of each micro-batch: at most `tokens` tokens each, in at most `most` of them.

    Rows of one trajectory stay together (a loss may take its mean over them), those of one group
    where the rows say so, and so do trajectories that begin alike, whose common tokens count once;
    without `share`, those of similar length. Where `most` does not suffice, which only rows that
    forked can bring about, the micro-batches grow beyond `tokens`.
    """
    members: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        members.setdefault(row.trajectory if row.group is None else row.group, []).append(number)
    groups = list(members.values())
    sizes = [sum(len(rows[n]) for n in own) for own in groups]
    if share:
        order, saved = in_order([rows[own[0]].ids for own in groups])
    else:
        order = sorted(range(len(groups)), key=lambda g: max(len(rows[n]) for n in groups[g]))
        saved = [0] * len(groups)
    budget = max(tokens, -(-(sum(sizes) - sum(saved)) // most))
    parts: list[list[int]] = []
    room = 0
    for group, less in zip(order, saved, strict=True):
        size = sizes[group] - less
        if not parts or (size > room and len(parts) < most):
            parts.append([])
            room, size = budget, sizes[group]
        parts[-1] += groups[group]
        room -= size
    return parts


def micro_batches(trajectories: int, row_tokens: int, tokens_per_batch: int) -> int:
    """How many micro-batches the budgets of a recipe allow for at most, per optimizer step.

    A micro-batch is closed early when the next trajectory does not fit, so that each but the last
    holds at least ``tokens_per_batch - row_tokens + 1`` tokens.
    """
    filled = max(tokens_per_batch - row_tokens + 1, 1)
    return max(1, min(trajectories, -(-trajectories * row_tokens // filled)))
