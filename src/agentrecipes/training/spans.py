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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from agentrecipes.training.tree import Node

if TYPE_CHECKING:
    from torch import Tensor

ALONE = 32  # tokens from which a node's attention to itself is a call of its own, without a copy
WASTE = 1.5  # smaller nodes share a call that may be so many times as large as they are,
SMALL = 1 << 12  # or have so many padded pairs of a query and a key more


class Span(NamedTuple):
    """The tokens in [end, last) see all those in [start, end)."""

    start: int
    end: int
    last: int


class Few(NamedTuple):
    """S short nodes whose attention to themselves is one call.

    Example: the nodes ``1 2`` and ``5`` at strip positions 0, 1 and 2 have ``places [[0, 1], [2,
    2]]`` and ``real [0, 1, 2]``; what stands behind a node's end is its first token.
    """

    places: Tensor  # (S, Q) int64 strip positions
    pads: Tensor  # (S, Q) bool: behind their node's end
    real: Tensor  # (n,) int64: which of the S · Q places are tokens of their node
    where: Tensor  # (n,) int64: the strip positions of those


@dataclass(frozen=True, slots=True)
class Spans:
    """Which stretches of a strip of N tokens see which."""

    alone: tuple[tuple[int, int], ...]  # stretches of a node each, causal
    together: tuple[Few, ...]
    spans: tuple[Span, ...]

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Spans:
        """Nodes laid end to end, each right before what comes behind it in the tree."""
        sizes = np.array([len(node.ids) for node in nodes])
        starts = np.concatenate([[0], np.cumsum(sizes)]).tolist()
        behind: dict[int, int] = {}
        for number, node in enumerate(nodes):
            behind |= dict.fromkeys(node.path, number + 1)
        edges = [(starts[n], starts[n + 1]) for n in range(len(nodes))]
        short = [n for n in range(len(nodes)) if sizes[n] < ALONE]
        return cls(
            alone=tuple(edges[n] for n in range(len(nodes)) if sizes[n] >= ALONE),
            together=tuple(_few([edges[n] for n in chosen]) for chosen in _alike(short, sizes)),
            spans=tuple(Span(*edges[n], starts[last]) for n, last in sorted(behind.items())),
        )

    def attended(self, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """(N, H, D) on a CPU: each token's attention, from (N, h, D) queries, keys and values."""
        out: Tensor = _Attended.apply(query, key, value, self, scale)
        return out


def _alike(numbers: list[int], sizes: np.ndarray) -> list[list[int]]:
    """Short nodes by call, similar sizes together."""
    calls: list[list[int]] = []
    real = 0
    for number in sorted(numbers, key=lambda n: (sizes[n], n)):
        pairs = int(sizes[number]) ** 2
        if not calls or (len(calls[-1]) + 1) * pairs > WASTE * (real + pairs) + SMALL:
            calls.append([])
            real = 0
        calls[-1].append(number)
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
        for edges in spans.alone:
            own = slice(*edges)
            out[own], norm[own] = _forward([x[own] for x in states], scale, causal=True)
        for few in spans.together:
            found, sums = _forward([x[few.places] for x in states], scale, causal=True)
            out[few.where], norm[few.where] = found[few.real].to(wide), sums[few.real]
        for start, end, last in spans.spans:
            own, seen = slice(end, last), slice(start, end)
            found, sums = _forward([x[i] for x, i in zip(states, (own, seen, seen))], scale)
            share = torch.sigmoid(sums - norm[own])  # of the joined softmax
            out[own].lerp_(found.to(wide), share[..., None])
            norm[own] = torch.logaddexp(norm[own], sums)
        out = out.to(query.dtype)
        ctx.save_for_backward(*states, out, norm)
        ctx.spans, ctx.scale = spans, scale
        return out

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Any, ...]:
        *states, out, norm = ctx.saved_tensors
        kept = (above, *states, out, norm)
        made = [torch.empty_like(x) for x in states]  # every token is in one node
        for edges in ctx.spans.alone:
            own = slice(*edges)
            for whole, part in zip(made, _backward([x[own] for x in kept], ctx.scale, causal=True)):
                whole[own] = part
        for few in ctx.spans.together:
            picked = [x[few.places] for x in kept]
            picked[-1] = picked[-1].masked_fill(few.pads[..., None], torch.inf)  # weigh nothing
            for whole, part in zip(made, _backward(picked, ctx.scale, causal=True)):
                whole[few.where] = part.flatten(0, 1)[few.real]
        for start, end, last in ctx.spans.spans:
            own, seen = slice(end, last), slice(start, end)
            places = (own, own, seen, seen, own, own)
            found = _backward([x[i] for x, i in zip(kept, places)], ctx.scale)
            for whole, place, part in zip(made, (own, seen, seen), found):
                whole[place] += part
        return (*made, None, None)


def _forward(
    states: Sequence[Tensor], scale: float | None, *, causal: bool = False
) -> tuple[Tensor, Tensor]:
    """Attention and the logarithm of its softmax's sum, of ([S,] Q, H, D) and ([S,] K, h, D)."""
    several = states[0].dim() == 4
    query, key, value = (x if several else x[None] for x in states)
    found, sums = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
        *(x.transpose(1, 2) for x in (query, key, value)), 0.0, causal, scale=scale
    )  # (S, H, Q, D), (S, H, Q)
    return found.transpose(1, 2).flatten(0, 1), sums.transpose(1, 2).flatten(0, 1)


def _backward(
    kept: Sequence[Tensor], scale: float | None, *, causal: bool = False
) -> Sequence[Tensor]:
    """Gradients by query, key and value, of the gradient above, those three, outcome and sums."""
    several = kept[0].dim() == 4
    above, *states, out, norm = (
        (x if several else x[None]).transpose(1, 2) for x in kept
    )
    found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward(
        above, *states, out, norm, 0.0, causal, scale=scale
    )
    return [(x if several else x[0]).transpose(-3, -2) for x in found]
