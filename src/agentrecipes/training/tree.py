"""Rows as a tree: tokens that several rows begin with are there once.

Attempts at one task share its prompt, often a first turn too, and all rows share a system prompt.
A causal model says the same of a token wherever what stands before it is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

LEAST = 16  # tokens that two rows must begin with in common to share them: attention pays a node


@dataclass(frozen=True, slots=True)
class Node:
    """A stretch of tokens, the nodes before it, and how deep it begins.

    Example: rows ``1 2 7`` and ``1 2 8 9`` are the nodes ``1 2`` at 0, ``7`` and ``8 9`` at 2.
    """

    ids: np.ndarray  # (T,) int64
    start: int  # the first token's place in every row that comes through here
    path: tuple[int, ...]  # numbers of the nodes before it, from the root


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes, each behind those of its path, and each row's way through them."""

    nodes: tuple[Node, ...]
    ways: tuple[tuple[int, ...], ...]  # by row: node numbers from the root to the row's end


def lone(rows: Sequence[np.ndarray]) -> Tree:
    """Every row a node of its own: nothing is shared."""
    return Tree(tuple(Node(ids, 0, ()) for ids in rows), tuple((n,) for n in range(len(rows))))


def shared(rows: Sequence[np.ndarray]) -> Tree:
    """The tree of rows (T,) int64."""
    order, common = in_order(rows)
    nodes: list[Node] = []
    ways: list[tuple[int, ...]] = [()] * len(rows)
    open_ranges: list[tuple[int, int, int, tuple[int, ...]]] = [(0, len(order), 0, ())]
    while open_ranges:
        first, last, start, path = open_ranges.pop()
        row = rows[order[first]]
        alone = last - first == 1
        end = len(row) if alone else min(common[first + 1 : last])
        if end > start:
            nodes.append(Node(row[start:end], start, path))
            path, start = (*path, len(nodes) - 1), end
        if alone:
            ways[order[first]] = path
            continue
        cuts = [n for n in range(first + 1, last) if common[n] == end]
        edges = pairwise([first, *cuts, last])
        open_ranges += [(a, b, start, path) for a, b in edges][::-1]
    return Tree(tuple(nodes), tuple(ways))


def in_order(rows: Sequence[np.ndarray]) -> tuple[list[int], list[int]]:
    """Row numbers so that common beginnings stand together, and what each shares with the last.

    That is 0 below LEAST, so that the tokens of the tree are those of the rows less the second.
    """
    order = sorted(range(len(rows)), key=lambda n: (rows[n].tobytes(), n))
    common = [0] * len(rows)
    for place, (last, this) in enumerate(pairwise(order), start=1):
        tokens = _overlap(rows[last], rows[this])
        common[place] = tokens if tokens >= LEAST else 0
    return order, common


def _overlap(one: np.ndarray, other: np.ndarray) -> int:
    length = min(len(one), len(other))
    apart = np.flatnonzero(one[:length] != other[:length])
    return int(apart[0]) if len(apart) else length
