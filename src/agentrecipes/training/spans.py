"""Attention over a strip by its tree: no token is copied behind its path, no pair is masked away.

A token sees its own node up to itself, and the whole of every node on its path. Nodes lie in the
order of a walk through the tree, so that what sees the whole of a node stands right behind it: one
dense call on two stretches of the strip. Softmaxes over parts of the keys join by their
log-sum-exp, and the backward kernel takes any part of the keys with the joined one: Dao et al.
2022, https://arxiv.org/abs/2205.14135; Liu et al. 2023, https://arxiv.org/abs/2310.01889.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from agentrecipes.training.tree import Node

if TYPE_CHECKING:
    from torch import Tensor

ALONE = 9216  # numbers in a stretch's queries from which it is a call of its own, without copies
LONGEST = 256  # tokens from which it is divided: causal calls compute what they mask away
WASTE = 1.5  # shorter stretches share a call that may be so many times as large as they are,
SMALL = 1 << 12  # or have so many padded pairs of a query and a key more


class Span(NamedTuple):
    """The tokens in [end, last) see all those in [start, end)."""

    start: int
    end: int
    last: int


class Few(NamedTuple):
    """S short stretches whose attention to themselves is one call.

    Example: strip positions 0, 1 and 2 in stretches ``0 1`` and ``2`` have ``places [[0, 1], [2,
    2]]`` and ``real [0, 1, 2]``; what stands behind a stretch's end is its first token.
    """

    places: Tensor  # (S, Q) int64 strip positions
    pads: Tensor  # (S, Q) bool: behind their stretch's end
    real: Tensor  # (n,) int64: which of the S · Q places are tokens of their stretch
    where: Tensor  # (n,) int64: the strip positions of those


@dataclass(frozen=True, slots=True)
class Spans:
    """Which stretches of a strip of N tokens see which."""

    alone: tuple[tuple[int, int], ...]  # causal, a call each
    together: tuple[Few, ...]  # causal, several a call
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, nodes: Sequence[Node], width: int) -> Spans:
        """Nodes laid end to end, each right before what comes behind it in the tree.

        `width`: numbers in a token's queries, all heads together.
        """
        starts = np.cumsum([0, *(len(node.ids) for node in nodes)]).tolist()
        behind: dict[int, int] = {}
        for number, node in enumerate(nodes):
            behind |= dict.fromkeys(node.path, number + 1)
        spans = [Span(*starts[n : n + 2], starts[last]) for n, last in sorted(behind.items())]
        stretches: list[tuple[int, int]] = []
        for start, end in pairwise(starts):
            cuts = [*range(start, end, LONGEST), end]
            stretches += pairwise(cuts)
            spans += [Span(start, *edges) for edges in pairwise(cuts[1:])]
        short = [each for each in stretches if (each[1] - each[0]) * width < ALONE]
        return cls(
            alone=tuple(each for each in stretches if (each[1] - each[0]) * width >= ALONE),
            together=tuple(_few(chosen) for chosen in _alike(short)),
            spans=tuple(spans),
        )

    def attended(self, states: Sequence[Tensor], *, scale: float | None = None) -> Tensor:
        """(N, H, D) on a CPU: each token's attention, from (N, h, D) queries, keys and values."""
        out: Tensor = _Attended.apply(*states, self, scale)  # type: ignore[no-untyped-call]
        return out


def _alike(stretches: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Short stretches by call, similar lengths together."""
    calls: list[list[tuple[int, int]]] = []
    real = 0
    for start, end in sorted(stretches, key=lambda edges: (edges[1] - edges[0], edges)):
        pairs = (end - start) ** 2
        if not calls or (len(calls[-1]) + 1) * pairs > WASTE * (real + pairs) + SMALL:
            calls.append([])
            real = 0
        calls[-1].append((start, end))
        real += pairs
    return calls


def _few(edges: Sequence[tuple[int, int]]) -> Few:
    high = max(end - start for start, end in edges)
    column = np.arange(high)
    starts, ends = np.array(edges).T[:, :, None]  # (S, 1) each
    places = starts + column
    inside = places < ends
    real = np.flatnonzero(inside)
    return Few(
        torch.from_numpy(np.where(inside, places, starts)),
        torch.from_numpy(~inside),
        torch.from_numpy(real),
        torch.from_numpy(places.flatten()[real]),
    )


class _Attended(torch.autograd.Function):
    """Calls both kernels by part. Kept are queries, keys, values, outcomes and sums, no copies."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        *states, spans, scale = arguments
        query, wide = states[0], torch.promote_types(states[0].dtype, torch.float32)
        out = query.new_empty(query.shape, dtype=wide)  # (N, H, D)
        norm = query.new_empty(query.shape[:2], dtype=wide)  # (N, H): log of the softmax's sum
        heads = [_heads(x) for x in (*states, out, norm)]  # (1, H, N, D), and (1, H, N)
        for start, end in spans.alone:
            *seen, made, sums = (x[:, :, start:end] for x in heads)
            for whole, part in zip(
                (made, sums), FORWARD(*seen, 0.0, True, scale=scale), strict=True
            ):
                whole.copy_(part)
        for few in spans.together:
            picked = [x[few.places].transpose(1, 2) for x in states]  # (S, h, Q, D)
            found = FORWARD(*picked, 0.0, True, scale=scale)
            for whole, part in zip((out, norm), found, strict=True):
                whole[few.where] = part.transpose(1, 2).flatten(0, 1)[few.real].to(wide)
        for start, end, last in spans.spans:
            own = [x[:, :, end:last] for x in heads]
            keys, values = (x[:, :, start:end] for x in heads[1:3])
            found, sums = FORWARD(own[0], keys, values, 0.0, False, scale=scale)
            share = torch.sigmoid(sums - own[4])  # of the joined softmax
            own[3].lerp_(found.to(wide), share[..., None])
            torch.logaddexp(own[4], sums, out=own[4])
        out = out.to(query.dtype)
        ctx.save_for_backward(*states, out, norm)
        ctx.spans, ctx.scale = spans, scale
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Any, ...]:
        *states, out, norm = ctx.saved_tensors
        kept, spans, scale = (above, *states, out, norm), ctx.spans, ctx.scale
        made = [torch.empty_like(x) for x in states]  # every token is in one stretch
        heads, whole = [_heads(x) for x in kept], [_heads(x) for x in made]
        for start, end in spans.alone:
            found = BACKWARD(*(x[:, :, start:end] for x in heads), 0.0, True, scale=scale)
            for into, part in zip(whole, found, strict=True):
                into[:, :, start:end] = part
        for few in spans.together:
            *picked, sums = (x[few.places].transpose(1, 2) for x in kept)
            sums = sums.masked_fill(few.pads[:, None], torch.inf)  # so that they weigh nothing
            for into, part in zip(
                made, BACKWARD(*picked, sums, 0.0, True, scale=scale), strict=True
            ):
                into[few.where] = part.transpose(1, 2).flatten(0, 1)[few.real]
        for start, end, last in spans.spans:
            own, seen = slice(end, last), slice(start, end)
            places = (own, own, seen, seen, own, own)
            parts = (x[:, :, place] for x, place in zip(heads, places, strict=True))
            found = BACKWARD(*parts, 0.0, False, scale=scale)
            for into, place, part in zip(whole, (own, seen, seen), found, strict=True):
                into[:, :, place] += part
        return (*made, None, None)


FORWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default
BACKWARD = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward.default


def _heads(x: Tensor) -> Tensor:
    """(1, H, N, ...) from (N, H, ...), as the kernels have it."""
    return x.transpose(0, 1)[None]
