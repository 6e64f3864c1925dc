"""Ratios, clips, importance weights and KL estimators, by hand."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.numerics import divergences, ratios
from agentrecipes.numerics.aggregation import sequence_mean, sequence_sum_norm, token_mean
from tolerances import EXACT, FLOAT64

ALL = torch.tensor([[True, True]])
ALONE = torch.tensor([0])


def tensor(values):
    return torch.tensor(values, dtype=torch.float64)


def close(actual, expected, tolerance=FLOAT64):
    expected = torch.as_tensor(expected, dtype=actual.dtype)
    torch.testing.assert_close(actual, expected, **tolerance)


def test_a_log_ratio_is_within_twenty_and_zero_off_the_mask():
    found = ratios.log_ratio(
        tensor([[0.5, -1.0, 99.0, math.nan]]),
        tensor([[0.2, 80.0, 0.0, 0.0]]),
        torch.tensor([[True, True, True, False]]),
    )
    close(found, [[0.3, -20.0, 20.0, 0.0]])


@pytest.mark.parametrize(
    ("ratio", "advantage", "expected"),
    [
        (1.5, 1.0, 1.2),  # clipped from above
        (0.5, 1.0, 0.5),  # a fall is not clipped where it hurts
        (0.5, -2.0, -1.4),  # clipped at 1 − .3
        (2.0, -2.0, -4.0),  # within the dual clip of 3
        (5.0, -2.0, -6.0),  # at the dual clip
    ],
)
def test_the_surrogate_takes_the_worse_of_both(ratio, advantage, expected):
    found = ratios.clipped_surrogate(
        tensor(ratio), tensor(advantage), clip_low=0.3, clip_high=0.2, dual_clip=3.0
    )
    close(found, expected)


def test_dual_clip_has_the_published_values():
    # c 3, ε .2, A −1: ρ 5 → −3, ρ 2 → −2; without it ρ 5 → −5.
    clips = {"clip_low": 0.2, "clip_high": 0.2}
    ratio, advantage = tensor([5.0, 2.0]), tensor([-1.0, -1.0])
    close(ratios.clipped_surrogate(ratio, advantage, **clips, dual_clip=3.0), [-3.0, -2.0])
    close(ratios.clipped_surrogate(ratio, advantage, **clips), [-5.0, -2.0])


def test_null_is_no_bound():
    ratio = tensor([0.1, 9.0])
    close(ratios.clip(ratio, None, None), [0.1, 9.0], EXACT)
    close(ratios.clip(ratio, None, 0.15), [0.1, 1.15])
    close(ratios.clip(ratio, 0.1, None), [0.9, 9.0])


@pytest.mark.parametrize(("high", "most"), [(0.15, 1.15), (0.14, 1.14)])
def test_agentic_rag_r1_keeps_the_ratio_within_its_published_ranges(high, most):
    # ε .1: GRPO up to 1 + 1.5 ε, DAPO up to 1 + 1.4 ε, both down to 1 - ε.
    close(ratios.clip(tensor([0.2, 1.0, 7.0]), 0.1, high), [0.9, 1.0, most])


def test_a_token_is_clipped_where_it_lost_its_gradient():
    ratio, advantage = tensor([1.5, 1.5, 0.5, 0.5, 1.0]), tensor([1.0, -1.0, 1.0, -1.0, 1.0])
    found = ratios.is_clipped(ratio, advantage, clip_low=0.2, clip_high=0.2)
    assert found.tolist() == [True, False, False, True, False]


def test_the_sequence_ratio_is_the_mean_over_all_rows_of_a_trajectory():
    # Rows 0 and 2 are one trajectory with log-ratios .3, .6 | −.3: mean .2; row 1 has .5 alone.
    log_ratios = tensor([[0.3, 0.6], [0.5, 8.0], [8.0, -0.3]])
    mask = torch.tensor([[True, True], [True, False], [False, True]])
    found = ratios.sequence_log_ratio(log_ratios, mask, torch.tensor([4, 1, 4]))
    close(found, [[0.2, 0.2], [0.5, 0.0], [0.0, 0.2]])


def test_importance_weights_are_truncated_by_token_or_by_trajectory():
    gap = tensor([[math.log(3.0), math.log(0.5)]])
    weigh = ratios.importance_weight
    close(weigh(gap, ALL, ALONE, cap=2.0, level="token"), [[2.0, 0.5]])
    close(weigh(gap, ALL, ALONE, cap=2.0, level="sequence"), [[1.5, 1.5]])
    close(weigh(gap, ALL, ALONE, cap=1.2, level="sequence"), [[1.2, 1.2]])


@pytest.mark.parametrize("level", ["token", "sequence"])
def test_a_token_whose_sampler_gave_no_number_is_dropped(level):
    gap = tensor([[math.log(1.5), math.inf]])
    found = ratios.importance_weight(gap, ALL, ALONE, cap=2.0, level=level)
    close(found, [[1.5, 0.0]])


def test_importance_weights_have_no_gradient():
    gap = tensor([[0.1, 0.2]]).requires_grad_()
    assert not ratios.importance_weight(gap, ALL, ALONE, cap=2.0, level="token").requires_grad


def test_the_soft_gate_has_slope_one_at_ratio_one_and_its_tau_by_sign():
    ratio = tensor([1.0, 1.0]).requires_grad_()
    advantage = tensor([1.0, -2.0])
    found = ratios.soft_gate(ratio, advantage, tau_positive=1.0, tau_negative=2.0)
    close(found.detach(), [2.0, -2.0])  # (4/τ)·½·A: 4/1·½·1 and 4/2·½·(−2)
    close(torch.autograd.grad(found.sum(), ratio)[0], [1.0, -2.0])


@pytest.mark.parametrize(
    ("estimator", "up", "down"),
    [("k1", 0.1, -0.1), ("k2", 0.005, 0.005), ("k3", 0.0048374180, 0.0051709181)],
)
def test_kl_estimators_have_the_published_values(estimator, up, down):
    # d = ±.1: k3 = e^−.1 + .1 − 1 = .0048374 and e^.1 − .1 − 1 = .0051709.
    found = divergences.kl(tensor([[0.1, -0.1]]), tensor([[0.0, 0.0]]), ALL, estimator=estimator)
    close(found, [[up, down]])


@given(st.floats(-30, 30), st.sampled_from(["k2", "k3"]))
def test_k2_and_k3_are_finite_and_never_negative(d, estimator):
    found = divergences.kl(tensor([[d, 0.0]]), tensor([[0.0, 0.0]]), ALL, estimator=estimator)
    assert torch.isfinite(found).all()
    assert (found >= 0).all()


def test_moving_away_from_the_reference_raises_the_divergence():
    for estimator in ("k1", "k2", "k3"):
        d = tensor([[0.3, 0.0]]).requires_grad_()
        divergences.kl(d, tensor([[0.0, 0.0]]), ALL, estimator=estimator).sum().backward()
        assert d.grad[0, 0] > 0


@pytest.mark.parametrize(
    ("measured", "expected"),
    [(0.11, 0.2002), (0.5, 0.2004), (0.0, 0.1996)],  # errors .1, then ±.2 at most; n/horizon .01
)
def test_an_adaptive_coefficient_moves_towards_its_target(measured, expected):
    found = divergences.adapted(0.2, measured=measured, target=0.1, trajectories=10, horizon=1000)
    assert found == pytest.approx(expected, rel=FLOAT64["rtol"])


ROWS = tensor([[1.0, 2.0, 100.0], [6.0, 100.0, 100.0], [3.0, 100.0, 100.0]])
MASK = torch.tensor([[True, True, False], [True, False, False], [True, False, False]])
FORKED = torch.tensor([0, 1, 0])  # trajectory 0: 1, 2 | 3; trajectory 1: 6


def test_token_mean_divides_by_all_tokens_of_the_step():
    close(token_mean(ROWS, MASK, action_tokens=8.0), 12.0 / 8.0)


def test_sequence_mean_counts_a_forked_trajectory_once():
    close(sequence_mean(ROWS, MASK, FORKED, sequences=2.0), (6.0 / 3 + 6.0 / 1) / 2)


def test_sequence_sum_norm_divides_by_the_constant():
    close(sequence_sum_norm(ROWS, MASK, sequences=2.0, max_tokens=4), 12.0 / (2 * 4))


def test_a_denominator_of_zero_is_a_share_of_zero():
    nothing = torch.zeros_like(MASK)
    close(token_mean(ROWS, nothing, action_tokens=0.0), 0.0, EXACT)
    close(sequence_mean(ROWS, nothing, FORKED, sequences=0.0), 0.0, EXACT)
    close(sequence_sum_norm(ROWS, nothing, sequences=0.0, max_tokens=4), 0.0, EXACT)
