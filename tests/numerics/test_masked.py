"""Sums, whitening and packing see action tokens alone."""

from __future__ import annotations

import torch

from agentrecipes.numerics.masked import Places, masked, masked_sum, trajectory_sum, whiten
from tolerances import EXACT, FLOAT64

NAN = torch.nan


def close(actual, expected, tolerance=FLOAT64):
    expected = torch.as_tensor(expected, dtype=actual.dtype)
    torch.testing.assert_close(actual, expected, **tolerance)


def test_masked_stops_nan_and_its_gradient():
    x = torch.tensor([2.0, NAN, 3.0], dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([True, False, True])
    (masked(x, mask) ** 2).sum().backward()
    close(x.grad, [4.0, 0.0, 6.0], EXACT)
    close(masked_sum(x.detach(), mask), 5.0, EXACT)


def test_whitening_uses_the_variance_over_n_minus_one():
    # Tokens 1, 3, 5: mean 3, variance (4 + 0 + 4) / 2 = 4, so −2/2, 0, 2/2 up to the 1e-8.
    x = torch.tensor([[1.0, NAN, 3.0], [5.0, 100.0, NAN]], dtype=torch.float64)
    mask = torch.tensor([[True, False, True], [True, False, False]])
    scale = (4 + 1e-8) ** -0.5
    close(whiten(x, mask), [[-2 * scale, 0.0, 0.0], [2 * scale, 0.0, 0.0]])


def test_whitening_one_token_or_none_gives_zero():
    x = torch.tensor([[7.0, 9.0]], dtype=torch.float64)
    close(whiten(x, torch.tensor([[True, False]])), [[0.0, 0.0]], EXACT)
    close(whiten(x, torch.tensor([[False, False]])), [[0.0, 0.0]], EXACT)


def test_rows_of_one_trajectory_share_their_sum():
    close(trajectory_sum(torch.tensor([1.0, 2.0, 4.0]), torch.tensor([5, 3, 5])), [5.0, 2.0, 5.0])


def forked():
    # Trajectory 1 has rows 0 and 2, trajectory 0 has row 1; trajectory 2 has none.
    mask = torch.tensor([[0, 1, 1, 0], [1, 0, 0, 0], [0, 1, 0, 1]], dtype=torch.bool)
    return Places.of(mask, torch.tensor([1, 0, 1]), 3)


def test_a_forked_trajectory_packs_in_the_order_of_its_rows():
    x = torch.tensor([[9.0, 1.0, 2.0, 9.0], [5.0, 9.0, 9.0, 9.0], [9.0, 3.0, 9.0, 4.0]])
    packed = forked().pack(x)
    close(packed, [[5, 0, 0, 0], [1, 2, 3, 4], [0, 0, 0, 0]], EXACT)
    close(forked().unpack(packed), [[0, 1, 2, 0], [5, 0, 0, 0], [0, 3, 0, 4]], EXACT)


def test_the_last_place_of_a_turn_without_tokens_is_that_of_the_turn_before():
    # Trajectory 1: tokens of turns 0, 0 | 2, 2, so turn 0 ends at place 1, turn 1 too, turn 2 at 3.
    # Trajectory 0: one token, of turn 1, so turn 0 has none yet.
    turn_index = torch.tensor([[-1, 0, 0, -1], [1, -1, -1, -1], [-1, 2, -1, 2]])
    assert forked().last(turn_index, 3).tolist() == [[-1, 0, 0], [1, 1, 3], [-1, -1, -1]]


def test_nothing_packs_to_nothing():
    mask = torch.zeros(2, 3, dtype=torch.bool)
    places = Places.of(mask, torch.tensor([0, 1]), 2)
    assert places.pack(torch.ones(2, 3)).shape == (2, 0)
    close(places.unpack(torch.zeros(2, 0)), [[0, 0, 0], [0, 0, 0]], EXACT)
