"""Attention over a shared prompt and a row's own columns is attention over both, row by row."""

from dataclasses import dataclass

import pytest
import torch

from agentrecipes.engines.attention import Seats, Sight, attend
from tolerances import EXACT, FLOAT32

HEADS, TIMES, WIDTH = 2, 3, 4  # key heads, queries for each of them, numbers of a head


@dataclass
class Stored:
    keys: torch.Tensor  # (rows, h, columns, d)
    values: torch.Tensor

    def by_head(self):
        return self.keys.flatten(0, 1), self.values.flatten(0, 1)


def stored(rows, columns):
    shape = (rows, HEADS, columns, WIDTH)
    return Stored(torch.randn(shape), torch.randn(shape))


def by_row(query, keys, values, seen):
    """(H, w, d) by a loop over heads and tokens; `seen` (w, columns) bool."""
    out = torch.empty_like(query)
    for head in range(query.shape[0]):
        for token in range(query.shape[1]):
            own = seen[token]
            scores = keys[head // TIMES][own] @ query[head, token] * 0.5
            out[head, token] = scores.softmax(0) @ values[head // TIMES][own]
    return out


def test_rows_take_seats_in_their_groups():
    # groups of two, one and no rows: three groups of two seats, of which three are empty
    seats = Seats.of([1, 0, 0], groups=3)
    assert (seats.groups, seats.size) == (3, 2)
    assert seats.seat_of.tolist() == [2, 0, 1]
    assert seats.row_of.tolist() == [1, 2, 0, 0, 0, 0]
    whole = Seats.of([0, 0, 1, 1], groups=2)
    assert (whole.row_of, whole.seat_of) == (None, None)


@pytest.mark.parametrize("groups", [[0, 0, 1, 1], [1, 0, 1, 1], [0, 0, 0], [2, 0]])
def test_what_sits_down_rises_where_it_was(groups):
    seats = Seats.of(groups, groups=3)
    x = torch.randn(len(groups), HEADS, 5, WIDTH)
    torch.testing.assert_close(seats.rise(seats.sit(x), HEADS), x, **EXACT)


@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.parametrize("groups", [[0, 0, 1, 1], [1, 0, 1], [0, 0]])
def test_a_shared_prompt_counts_as_the_first_columns_of_each_row(groups, new):
    torch.manual_seed(len(groups) + new)
    rows, own, prompt = len(groups), stored(len(groups), 5), stored(2, 6)
    query = torch.randn(rows, HEADS * TIMES, new, WIDTH)
    seen = torch.rand(rows, new, 5) < 0.6
    seen[..., -1] = True
    begun = torch.tensor([[True] * 6, [False, False, True, True, True, True]])  # (2, 6)
    sight = Sight(bias(seen), bias(begun), Seats.of(groups, groups=2))
    found = attend(query, own, prompt, sight=sight, scale=0.5)
    for row, group in enumerate(groups):
        keys = torch.cat([prompt.keys[group], own.keys[row]], 1)
        values = torch.cat([prompt.values[group], own.values[row]], 1)
        both = torch.cat([begun[group].expand(new, 6), seen[row]], 1)
        expected = by_row(query[row], keys, values, both)
        torch.testing.assert_close(found[row], expected, **FLOAT32)


def bias(seen):
    return torch.zeros(seen.shape).masked_fill(~seen, float("-inf"))


def test_without_a_prompt_only_a_rows_own_columns_count():
    torch.manual_seed(0)
    own, query = stored(2, 5), torch.randn(2, HEADS * TIMES, 1, WIDTH)
    found = attend(query, own, None, sight=Sight(None), scale=0.5)
    everything = torch.ones(1, 5, dtype=torch.bool)
    for row in range(2):
        expected = by_row(query[row], own.keys[row], own.values[row], everything)
        torch.testing.assert_close(found[row], expected, **FLOAT32)
