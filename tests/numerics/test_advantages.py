"""Group statistics and recursions: published values, hand computation, and properties."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.numerics.advantages import (
    discounted,
    gae,
    group_advantages,
    group_mean,
    group_std,
    has_signal,
    leave_one_out,
)
from tolerances import EXACT, FLOAT32, FLOAT64

RETURNS = torch.tensor([1.0, 0.0, 0.0, 0.0], dtype=torch.float64)
ONE_GROUP = torch.zeros(4, dtype=torch.int64)

returns = st.lists(st.floats(-5, 5), min_size=2, max_size=8)


def close(actual, expected, tolerance=FLOAT64):
    expected = torch.as_tensor(expected, dtype=actual.dtype)
    torch.testing.assert_close(actual, expected, **tolerance)


@pytest.mark.parametrize(
    ("std", "epsilon", "first", "others"),
    [
        # μ .25; sample variance (.75² + 3·.25²)/3 = .25, so σ .5; population σ √(3/16) = .4330.
        ("sample", 1e-6, 0.75 / 0.500001, -0.25 / 0.500001),  # 1.499997, −.499999
        ("sample", 1e-4, 0.75 / 0.5001, -0.25 / 0.5001),  # 1.499700, −.499900
        ("population", 0.0, math.sqrt(3), -1 / math.sqrt(3)),  # 1.732051, −.577350
        ("none", 1e-6, 0.75, -0.25),
    ],
)
def test_group_advantages_have_the_published_values(std, epsilon, first, others):
    found = group_advantages(RETURNS, ONE_GROUP, std=std, epsilon=epsilon)
    close(found, [first, others, others, others])


def test_leaving_one_out_has_the_published_values():
    close(leave_one_out(RETURNS, ONE_GROUP), [1.0, -1 / 3, -1 / 3, -1 / 3])


def test_statistics_are_those_of_each_group():
    # Group 7 holds 1, 4 and 7: μ 4, squares 9 + 0 + 9. Group 2 holds 5 alone.
    values = torch.tensor([1.0, 5.0, 4.0, 7.0], dtype=torch.float64)
    group = torch.tensor([7, 2, 7, 7])
    close(group_mean(values, group), [4.0, 5.0, 4.0, 4.0])
    close(group_std(values, group), [3.0, 0.0, 3.0, 3.0])
    close(group_std(values, group, std="population"), [6**0.5, 0.0, 6**0.5, 6**0.5])
    assert has_signal(values, group).tolist() == [True, False, True, True]


@pytest.mark.parametrize("estimate", [group_advantages, leave_one_out])
def test_equal_returns_and_one_alone_have_exactly_zero(estimate):
    values = torch.tensor([0.1, 0.1, 0.1, 9.0])  # 0.1 has no exact mean
    close(estimate(values, torch.tensor([0, 0, 0, 1])), [0.0] * 4, EXACT)


@pytest.mark.parametrize("estimate", [group_advantages, leave_one_out])
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_return_that_is_not_finite_is_left_out_of_its_group(estimate, broken):
    group = torch.zeros(3, dtype=torch.int64)
    found = estimate(torch.tensor([2.0, broken, 5.0]), group)
    others = estimate(torch.tensor([2.0, 5.0]), group[:2])
    close(found, [float(others[0]), 0.0, float(others[1])], EXACT)


@given(returns)
def test_equal_returns_give_zero_in_float32_too(values):
    equal = torch.full((len(values),), values[0], dtype=torch.float32)
    close(group_advantages(equal, torch.zeros(len(values), dtype=torch.int64)), [0.0] * len(values))


@given(returns, st.floats(-3, 3))
def test_a_constant_added_to_every_return_changes_nothing(values, shift):
    group = torch.zeros(len(values), dtype=torch.int64)
    plain = torch.tensor(values, dtype=torch.float64).round(decimals=6)
    shifted = group_advantages(plain + round(shift, 6), group)
    torch.testing.assert_close(shifted, group_advantages(plain, group), **FLOAT32)


@given(returns, st.randoms(use_true_random=False))
def test_permuting_a_group_permutes_its_advantages(values, random):
    order = list(range(len(values)))
    random.shuffle(order)
    plain = torch.tensor(values, dtype=torch.float64)
    group = torch.arange(len(values)) % 2
    for estimate in (group_advantages, leave_one_out):
        permuted = estimate(plain[order], group[order])
        torch.testing.assert_close(permuted, estimate(plain, group)[order], **FLOAT32)


@given(returns)
def test_a_groups_advantages_sum_to_zero(values):
    group = torch.zeros(len(values), dtype=torch.int64)
    plain = torch.tensor(values, dtype=torch.float64).round(decimals=6)
    close(group_advantages(plain, group).sum(), 0.0, FLOAT32)


@given(returns)
def test_leave_one_out_is_the_centred_return_scaled(values):
    # G/(G − 1) · (R − μ)
    plain = torch.tensor(values, dtype=torch.float64)
    group = torch.zeros(len(values), dtype=torch.int64)
    scale = len(values) / (len(values) - 1)
    centred = group_advantages(plain, group, std="none")
    torch.testing.assert_close(leave_one_out(plain, group), scale * centred, **FLOAT64)


def test_packed_gae_has_the_published_values():
    # γ .5, λ 1, V 0, action tokens P P . . P with reward 1 on the last: .25, .5, 1 once packed.
    rewards = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    close(gae(rewards, torch.zeros_like(rewards), gamma=0.5, lam=1.0), [[0.25, 0.5, 1.0]])


def test_step_gae_has_the_published_values():
    # γ = λ = 1, r 0, 0, 1 and V .2, .5, .8: δ .3, .3, .2, so A .8, .5, .2.
    rewards = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    values = torch.tensor([[0.2, 0.5, 0.8]], dtype=torch.float64)
    close(gae(rewards, values, gamma=1.0, lam=1.0), [[0.8, 0.5, 0.2]])


def test_gae_discounts_values_by_gamma_and_errors_by_both():
    # γ .5, λ .4; r 1, 2; V 3, 6. δ_1 = 2 − 6 = −4; δ_0 = 1 + .5·6 − 3 = 1; A_0 = 1 + .2·(−4) = .2
    rewards = torch.tensor([[1.0, 2.0]], dtype=torch.float64)
    values = torch.tensor([[3.0, 6.0]], dtype=torch.float64)
    close(gae(rewards, values, gamma=0.5, lam=0.4), [[0.2, -4.0]])


@given(st.lists(st.floats(-2, 2), min_size=1, max_size=6), st.floats(0, 1))
def test_gae_with_lambda_one_is_return_minus_value(rewards, gamma):
    packed = torch.tensor([rewards], dtype=torch.float64)
    values = torch.linspace(-1, 1, len(rewards), dtype=torch.float64)[None]
    found = gae(packed, values, gamma=gamma, lam=1.0)
    torch.testing.assert_close(found, discounted(packed, gamma) - values, **FLOAT64)


def test_a_shorter_trajectory_stays_zero_behind_its_end():
    rewards = torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
    values = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.5]], dtype=torch.float64)
    found = gae(rewards, values, gamma=1.0, lam=1.0)
    close(found, [[0.5, 0.5, 0.0], [0.5, 0.5, 0.5]])
