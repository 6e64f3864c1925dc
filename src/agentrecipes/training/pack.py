"""Rows packed into strips: what the model sees. ``index`` leads from a strip to logical rows.

A strip holds its rows end to end, without padding. Log-probabilities are computed once for each
scored position and spread to (B, T) by ``index``, so that losses know nothing of packing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from agentrecipes.training.attention import Segments
from agentrecipes.training.rows import Row

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Strip:
    """N tokens of B rows; M of them are scored, which means that their log-probability is wanted.

    Example: rows ``1 2 [7]`` and ``3 [8]`` give ``ids 1 2 7 3 8``, ``scored [1, 3]`` (the positions
    that predict), ``targets [7, 8]`` and ``index [[2, 2, 0], [2, 1, 2]]`` (M = 2 stands for none).
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


def strip(rows: Sequence[Row], scored: Sequence[np.ndarray]) -> Strip:
    """The strip of B rows; `scored` has a (T,) bool array a row, and never the first token."""
    lengths = [len(row) for row in rows]
    longest = max(lengths)
    sources, targets, start = [], [], 0
    index = np.full((len(rows), longest), -1, dtype=np.int64)
    count = 0
    for number, (row, wanted) in enumerate(zip(rows, scored, strict=True)):
        places = np.flatnonzero(wanted[1:]) + 1
        sources.append(start + places - 1)
        targets.append(row.ids[places])
        index[number, places] = count + np.arange(len(places))
        count += len(places)
        start += len(row)
    index[index < 0] = count
    return Strip(
        ids=torch.from_numpy(np.concatenate([row.ids for row in rows]))[None],
        positions=torch.from_numpy(np.concatenate([np.arange(n) for n in lengths]))[None],
        segments=Segments.of(lengths),
        scored=torch.from_numpy(np.concatenate(sources)),
        targets=torch.from_numpy(np.concatenate(targets)),
        index=torch.from_numpy(index),
    )


def partition(rows: Sequence[Row], tokens: int, most: int) -> list[list[int]]:
    """Row numbers of each micro-batch: at most `tokens` tokens each, in at most `most` of them.

    Rows of one trajectory stay together (a loss may take its mean over them), and trajectories of
    similar length meet, because attention pads a strip's rows to its longest. Where `most` does not
    suffice, which only rows that forked can bring about, the micro-batches grow beyond `tokens`.
    """
    members: dict[int, list[int]] = {}
    for number, row in enumerate(rows):
        members.setdefault(row.trajectory, []).append(number)
    by_length = sorted(members.values(), key=lambda own: (max(len(rows[n]) for n in own), own[0]))
    total = sum(len(row) for row in rows)
    budget = max(tokens, -(-total // most))
    parts: list[list[int]] = []
    room = 0
    for own in by_length:
        size = sum(len(rows[n]) for n in own)
        if not parts or (size > room and len(parts) < most):
            parts.append([])
            room = budget
        parts[-1] += own
        room -= size
    return parts


def micro_batches(trajectories: int, row_tokens: int, tokens_per_batch: int) -> int:
    """How many micro-batches the budgets of a recipe allow for at most, per optimizer step.

    A micro-batch is closed early when the next trajectory does not fit, so that each but the last
    holds at least ``tokens_per_batch - row_tokens + 1`` tokens.
    """
    filled = max(tokens_per_batch - row_tokens + 1, 1)
    return max(1, min(trajectories, -(-trajectories * row_tokens // filled)))
