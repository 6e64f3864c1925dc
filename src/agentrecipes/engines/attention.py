"""Attention of new tokens over a row's own columns and over a prompt that its group has once.

The scores of both parts go through one softmax, so that nothing has to be merged afterwards. All
attempts of a group read their prompt's keys in one matrix product; each reads its own alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Seats:
    """Where n rows sit in G groups of C seats: ``Seats.of([0, 0, 1], groups=2)`` has C = 2."""

    groups: int
    size: int
    row_of: Tensor | None  # (G * C,) the row on each seat, any where it is empty
    seat_of: Tensor | None  # (n,); both None: row i sits on seat i and no seat is empty

    @classmethod
    def of(cls, group_of: Sequence[int], *, groups: int) -> Seats:
        """The seats of rows whose groups are known; a group may have no row left."""
        taken = [0] * groups
        places = []
        for group in group_of:
            places.append((group, taken[group]))
            taken[group] += 1
        size = max(taken)
        seats = [group * size + place for group, place in places]
        if seats == list(range(groups * size)):
            return cls(groups, size, None, None)
        rows = [0] * (groups * size)
        for row, seat in enumerate(seats):
            rows[seat] = row
        return cls(groups, size, torch.tensor(rows), torch.tensor(seats))

    def sit(self, x: Tensor) -> Tensor:
        """(n, h, q, e) by row → (G * h, C * q, e) by group."""
        _, heads, queries, width = x.shape
        seated = x if self.row_of is None else x[self.row_of]
        by_group = seated.reshape(self.groups, self.size, heads, queries, width).transpose(1, 2)
        return by_group.reshape(self.groups * heads, self.size * queries, width)

    def rise(self, x: Tensor, heads: int) -> Tensor:
        """(G * h, C * q, e) by group → (n, h, q, e) by row."""
        width = x.shape[-1]
        by_group = x.view(self.groups, heads, self.size, -1, width).transpose(1, 2)
        rows = by_group.reshape(self.groups * self.size, heads, -1, width)
        return rows if self.seat_of is None else rows[self.seat_of]


@dataclass(frozen=True, slots=True)
class Sight:
    """What the new tokens of n rows may see, the same in every layer; biases are 0 or -inf."""

    own: Tensor | None  # (n, w, S): over a row's own columns; None: all of them
    prompt: Tensor | None = None  # (G, P): over the shared prompts' columns; None: all of them
    seats: Seats | None = None  # None: there are no shared prompts


def attend(
    query: Tensor,
    own: tuple[Tensor, Tensor],
    prompt: tuple[Tensor, Tensor] | None,
    *,
    sight: Sight,
    scale: float,
) -> Tensor:
    """(n, H, w, d): attention of `query` (n, H, w, d), heads H being a multiple of h.

    `own`: keys and values (n, h, S, d); `prompt`: those of the groups (G, h, P, d). All float32.
    """
    n, every, w, d = query.shape
    heads = own[0].shape[1]
    asked = query.reshape(n, heads, -1, d)  # (n, h, q, d) with q = H / h * w
    keys, values = (states.reshape(n * heads, -1, d) for states in own)
    bias = None if sight.own is None else _by_head(sight.own, heads, times=every // heads)
    scores = _scores(asked.reshape(n * heads, -1, d), keys, bias, scale=scale)  # (n h, q, S)
    if prompt is None or sight.seats is None:
        return torch.bmm(scores.softmax(-1), values).view(n, every, w, d)
    first = [states.reshape(-1, states.shape[2], d) for states in prompt]  # (G h, P, d)
    bias = None if sight.prompt is None else _by_head(sight.prompt[:, None], heads, times=1)
    before = _scores(sight.seats.sit(asked), first[0], bias, scale=scale)  # (G h, C q, P)
    both = torch.cat(
        [sight.seats.rise(before, heads), scores.reshape(n, heads, -1, keys.shape[1])], -1
    )
    shares = both.softmax(-1)  # (n, h, q, P + S)
    size = before.shape[-1]
    later = torch.bmm(shares[..., size:].reshape(n * heads, -1, keys.shape[1]), values)
    seated = torch.bmm(sight.seats.sit(shares[..., :size]), first[1])
    return later.view(n, every, w, d) + sight.seats.rise(seated, heads).reshape(n, every, w, d)


def _scores(query: Tensor, keys: Tensor, bias: Tensor | None, *, scale: float) -> Tensor:
    if bias is None:
        nothing = query.new_empty(1)
        return torch.baddbmm(nothing, query, keys.mT, beta=0, alpha=scale)
    return torch.baddbmm(bias, query, keys.mT, alpha=scale)


def _by_head(bias: Tensor, heads: int, *, times: int) -> Tensor:
    """(n, w, S) → (n * heads, times * w or 1, S), as the scores lie."""
    n, w, columns = bias.shape
    if w == 1:
        return bias[:, None].expand(n, heads, 1, columns).reshape(n * heads, 1, columns)
    spread = bias[:, None, None].expand(n, heads, times, w, columns)
    return spread.reshape(n * heads, times * w, columns)
