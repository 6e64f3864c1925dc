"""Pairing two lists so that the pairs are worth most together."""

from __future__ import annotations

import math
from collections.abc import Sequence

FREE = -1


def best_total(gain: Sequence[Sequence[float]]) -> float:
    """The greatest sum of ``gain[i][j]`` over pairs that share no row and no column.

    `gain` is a table of rows of one length, with entries of at least 0. The Hungarian method with
    potentials, O(rows² · columns). Kuhn 1955, https://doi.org/10.1002/nav.3800020109.
    """
    rows = [list(row) for row in gain if row]
    if not rows:
        return 0.0
    if len(rows) > len(rows[0]):
        rows = [list(column) for column in zip(*rows, strict=True)]
    owner = _owners([[-value for value in row] for row in rows])
    return math.fsum(rows[row][column] for column, row in enumerate(owner) if row != FREE)


def _owners(cost: list[list[float]]) -> list[int]:
    """The row of each column where every row has one and the sum of costs is least."""
    width = len(cost[0])
    owner: list[int] = [FREE] * width
    high, low = [0.0] * len(cost), [0.0] * width  # potentials of rows and of columns
    for start in range(len(cost)):
        row, column = start, -1  # the row that needs a column, and where it came from
        slack, came = [math.inf] * width, [-1] * width
        tree: list[int] = []  # columns that are reached, in order
        while True:
            for other in range(width):
                reduced = cost[row][other] - high[row] - low[other]
                if other not in tree and reduced < slack[other]:
                    slack[other], came[other] = reduced, column
            nearest = min((c for c in range(width) if c not in tree), key=slack.__getitem__)
            step = slack[nearest]
            high[start] += step
            for reached in tree:
                high[owner[reached]] += step
                low[reached] -= step
            slack = [each - step for each in slack]
            tree.append(nearest)
            column = nearest
            if owner[nearest] == FREE:
                break
            row = owner[nearest]
        while column >= 0:  # hand the columns on along the path
            before = came[column]
            owner[column] = start if before < 0 else owner[before]
            column = before
    return owner
