"""Where two algorithms say the same, they give the same; and degenerate groups give nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from agentrecipes.components import names
from agentrecipes.testing.algorithm_suite import moved, prepared, random_batch
from algorithms.test_suite import with_fields
from tolerances import EXACT, FLOAT64


def same(left, right):
    """Two algorithms on the same batch: advantages and loss."""
    batch = random_batch()
    ready = [prepared(algorithm, batch) for algorithm in (left, right)]
    torch.testing.assert_close(ready[0].advantage, ready[1].advantage, **FLOAT64)
    losses = [
        algorithm.loss(moved(batch), one).total
        for algorithm, one in zip((left, right), ready, strict=True)
    ]
    torch.testing.assert_close(*losses, **FLOAT64)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("dapo", {"clip_high": 0.2}), ("grpo", {"aggregation": "token_mean"})),
        (
            ("dr_grpo", {"max_tokens": 7}),
            ("grpo", {"std": "none", "aggregation": "sequence_sum_norm", "max_tokens": 7}),
        ),
        (("gigpo", {"step_weight": 0.0}), ("grpo", {})),
        (
            ("reinforce_pp_baseline", {"whiten": False}),
            ("grpo", {"std": "none", "aggregation": "token_mean"}),
        ),
        (
            ("vl_dac", {"kl": {}, "dual_clip": None, "whiten": True}),
            ("step_ppo", {"clip_low": 0.1, "clip_high": 0.1, "gamma": 0.99, "lam": 0.95}),
        ),
    ],
    ids=lambda pair: pair[0],
)
def test_one_algorithm_is_another_with_other_fields(left, right):
    same(with_fields(*left), with_fields(*right))


def test_turn_grpo_without_turn_rewards_is_grpo():
    batch = replace(random_batch(), turn_rewards=torch.zeros(0, dtype=torch.float64))
    found, expected = (with_fields(n, {}).advantages(batch) for n in ("turn_grpo", "grpo"))
    torch.testing.assert_close(found, expected, **FLOAT64)


def test_ppo_with_lambda_one_has_return_minus_value():
    ppo = with_fields("ppo", {"whiten": False})
    batch = random_batch()
    returns = with_fields("reinforce", {}).advantages(batch)
    values = torch.where(batch.action_mask, batch.values_old, 0.0)
    torch.testing.assert_close(ppo.advantages(batch), returns - values, **FLOAT64)
    torch.testing.assert_close(ppo.value_targets(batch), returns, **FLOAT64)


def test_a_return_alone_is_a_reward_on_the_last_token():
    batch = random_batch()
    alone = replace(batch, turn_rewards=torch.zeros(0, dtype=torch.float64))
    last = torch.zeros_like(batch.turn_rewards)
    for n in range(len(batch.returns)):
        turns = batch.turn_index[batch.trajectory == n]
        last[n, turns.max()] = batch.returns[n]
    at_the_end = replace(batch, turn_rewards=last)
    for name in ("ppo", "reinforce", "step_ppo", "turn_grpo"):
        algorithm = with_fields(name, {})
        torch.testing.assert_close(
            algorithm.advantages(alone), algorithm.advantages(at_the_end), **FLOAT64
        )


GROUPED = [name for name in names("algorithm") if with_fields(name, {}).needs.groups]


@pytest.mark.parametrize("name", GROUPED)
def test_a_degenerate_group_has_exactly_zero(name):
    batch = random_batch()
    by_turn = batch.turn_rewards.clone()
    by_turn[:3] = torch.tensor([0.1, 0.1, 0.0, 0.0])  # the first group: rows 0 to 3
    equal = replace(batch, turn_rewards=by_turn, returns=by_turn.sum(dim=1))
    found = with_fields(name, {"gamma": 1.0}).advantages(equal)
    if name == "turn_grpo":  # its trajectories may still differ by where the turns ended
        equal = replace(equal, turn_rewards=torch.zeros(0, dtype=torch.float64))
        found = with_fields(name, {}).advantages(equal)
    if name == "gigpo":  # turns of one state may differ though the totals are equal
        found = with_fields(name, {"step_weight": 0.0}).advantages(equal)
    torch.testing.assert_close(found[:4], torch.zeros_like(found[:4]), **EXACT)
    assert found[4:].any()


@pytest.mark.parametrize("name", GROUPED)
def test_a_shift_of_every_return_changes_nothing(name):
    batch = replace(random_batch(), turn_rewards=torch.zeros(0, dtype=torch.float64))
    algorithm = with_fields(name, {"gamma": 1.0})
    shifted = algorithm.advantages(replace(batch, returns=batch.returns + 2.0))
    torch.testing.assert_close(shifted, algorithm.advantages(batch), **FLOAT64)


@pytest.mark.parametrize("name", names("algorithm"))
def test_float32_stays_float32_and_close(name):
    algorithm, batch = with_fields(name, {}), random_batch()
    single = replace(batch, logp_old=batch.logp_old.float())
    assert algorithm.advantages(single).dtype == torch.float32
    torch.testing.assert_close(
        algorithm.advantages(single), algorithm.advantages(batch).float(), **EXACT
    )
