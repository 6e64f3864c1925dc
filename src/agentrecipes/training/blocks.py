"""Attention over a strip by blocks: nodes of similar size gathered behind their paths.

It asks nothing of a device but the usual attention: what accelerators and dropout take.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from agentrecipes.training.tree import Node

if TYPE_CHECKING:
    from torch import Tensor

WASTE = 2  # a block may be so many times as large as what is in it,
SMALL = 1 << 16  # or have so many padded pairs of a query and a key more


@dataclass(frozen=True, slots=True)
class Block:
    """S nodes whose attention is one call.

    Example: the nodes ``1 2`` and ``5`` at strip positions 0, 1 and 2 have ``queries [[0, 1],
    [2, 0]]``, the same keys and no mask; what stands behind a node's end is any position.
    """

    queries: Tensor  # (S, Q) int64 strip positions
    keys: Tensor  # (S, K) int64 strip positions: a node's path and the node
    mask: Tensor | None  # (S, 1, Q, K) bool, True: attends; none for roots, which are causal

    def to(self, device: torch.device) -> Block:
        mask = None if self.mask is None else self.mask.to(device)
        return Block(self.queries.to(device), self.keys.to(device), mask)


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of a strip of N tokens, and where each token's outcome is among theirs."""

    blocks: tuple[Block, ...]
    scatter: Tensor  # (N,) int64: place of a strip position in the blocks' flattened outcomes

    @classmethod
    def of(cls, nodes: Sequence[Node]) -> Blocks:
        """Nodes laid end to end in their order."""
        sizes = [len(node.ids) for node in nodes]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        scatter = np.empty(starts[-1], dtype=np.int64)
        blocks, offset = [], 0
        for chosen in _alike(nodes):
            blocks.append(_block(nodes, chosen, starts))
            width = blocks[-1].queries.shape[1]
            for place, number in enumerate(chosen):
                own = slice(starts[number], starts[number + 1])
                scatter[own] = offset + place * width + np.arange(sizes[number])
            offset += len(chosen) * width
        return cls(tuple(blocks), torch.from_numpy(scatter))

    def to(self, device: torch.device) -> Blocks:
        blocks = tuple(block.to(device) for block in self.blocks)
        return Blocks(blocks, self.scatter.to(device))

    def attended(
        self, states: Sequence[Tensor], *, dropout: float = 0.0, scale: float | None = None
    ) -> Tensor:
        """(N, H, D): each token's attention, from (N, h, D) queries, keys and values."""
        query, key, _ = states
        grouped = query.shape[1] != key.shape[1]
        options = {"dropout_p": dropout, "scale": scale, "enable_gqa": grouped}
        outcomes = [_attended(block, states, options) for block in self.blocks]
        joined = outcomes[0] if len(outcomes) == 1 else torch.cat(outcomes)
        return joined.index_select(0, self.scatter)


def _alike(nodes: Sequence[Node]) -> Iterator[list[int]]:
    """Node numbers by block: roots apart from the rest, similar sizes together."""
    for roots in (True, False):
        own = [n for n, node in enumerate(nodes) if (not node.path) == roots]
        own.sort(key=lambda n: (len(nodes[n].ids) + nodes[n].start, len(nodes[n].ids), n))
        block: list[int] = []
        real = wide = high = 0
        for number in own:
            queries = len(nodes[number].ids)
            keys = nodes[number].start + queries
            wide, high, real = max(wide, keys), max(high, queries), real + queries * keys
            if block and (len(block) + 1) * wide * high > WASTE * real + SMALL:
                yield block
                block, wide, high, real = [], keys, queries, queries * keys
            block.append(number)
        if block:
            yield block


def _block(nodes: Sequence[Node], chosen: Sequence[int], starts: np.ndarray) -> Block:
    high = max(len(nodes[n].ids) for n in chosen)
    wide = max(nodes[n].start + len(nodes[n].ids) for n in chosen)
    queries = np.zeros((len(chosen), high), dtype=np.int64)
    keys = np.zeros((len(chosen), wide), dtype=np.int64)
    for place, number in enumerate(chosen):
        node, column = nodes[number], 0
        for part in (*node.path, number):
            size = len(nodes[part].ids)
            keys[place, column : column + size] = starts[part] + np.arange(size)
            column += size
        queries[place, : len(node.ids)] = starts[number] + np.arange(len(node.ids))
    if not nodes[chosen[0]].path:
        return Block(torch.from_numpy(queries), torch.from_numpy(keys), None)
    depth = torch.tensor([nodes[n].start for n in chosen])[:, None] + torch.arange(high)  # (S, Q)
    ends = torch.tensor([nodes[n].start + len(nodes[n].ids) for n in chosen])  # (S,)
    column_of = torch.arange(wide)  # (K,)
    mask = (column_of <= depth[:, :, None]) & (column_of < ends[:, None, None])  # (S, Q, K)
    return Block(torch.from_numpy(queries), torch.from_numpy(keys), mask[:, None])


def _attended(block: Block, states: Sequence[Tensor], options: dict[str, Any]) -> Tensor:
    """(S · Q, H, D): a block's attention, from (N, h, D) queries, keys and values."""
    query, key, value = states

    def gathered(x: Tensor, places: Tensor) -> Tensor:  # (N, h, D) -> (S, h, L, D)
        picked = x.index_select(0, places.flatten())
        return picked.view(*places.shape, *x.shape[1:]).transpose(1, 2)

    out = scaled_dot_product_attention(
        gathered(query, block.queries),
        gathered(key, block.keys),
        gathered(value, block.keys),
        attn_mask=block.mask,
        is_causal=block.mask is None,
        **options,
    )  # (S, H, Q, D)
    return out.transpose(1, 2).flatten(0, 1)
