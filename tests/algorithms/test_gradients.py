"""Gradients: the loss's slope, nothing where it should be, and REINFORCE's at ratio 1."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from agentrecipes.algorithms.protocol import Outputs
from agentrecipes.components import names
from agentrecipes.testing.algorithm_suite import moved, prepared, random_batch, rows_of
from algorithms.test_suite import TERMS, with_fields
from tolerances import EXACT, FLOAT64

DETACHED = {"cispo"}  # its weight has no gradient, so the loss's value is not its integral
POLICY = sorted(set(names("algorithm")) - {"sft", "dpo"})  # dpo's has a pair's margin in it
ROWS = [0, 2, 5]


def gradient(algorithm, batch, logp):
    outputs = moved(batch)
    loss = algorithm.loss(Outputs(logp, outputs.value, outputs.entropy), batch)
    return torch.autograd.grad(loss.total, logp)[0]


@pytest.mark.parametrize("name", sorted(set(names("algorithm")) - DETACHED))
def test_the_gradient_is_the_slope_of_the_loss(name):
    algorithm = with_fields(name, {**TERMS, "importance": None})
    batch = rows_of(prepared(algorithm, random_batch()), ROWS)
    outputs = moved(batch)

    inputs = (outputs.logp, outputs.value.requires_grad_(), outputs.entropy.requires_grad_())
    assert torch.autograd.gradcheck(lambda *x: algorithm.loss(Outputs(*x), batch).total, inputs)


@pytest.mark.parametrize("name", POLICY)
def test_at_ratio_one_the_gradient_is_that_of_reinforce(name):
    # −A/M by token where tokens are averaged: every ratio's slope at 1 is 1, clips are not met.
    # REINFORCE's own loss and every surrogate agree there.
    algorithm = with_fields(name, {"aggregation": "token_mean", "kl": {}})
    batch = prepared(algorithm, random_batch())
    constant = torch.where(batch.action_mask, 1.5, 0.0).double()  # by token, so gspo agrees too
    batch = replace(batch, advantage=constant)
    logp = torch.where(batch.action_mask, batch.logp_old, 0.0).requires_grad_()
    expected = -constant / batch.action_tokens
    torch.testing.assert_close(gradient(algorithm, batch, logp), expected, **FLOAT64)


@pytest.mark.parametrize("name", ["ppo", "grpo", "dapo", "rloo", "gspo", "vl_dac"])
def test_a_clipped_token_has_no_gradient(name):
    algorithm = with_fields(name, {"kl": {}, "dual_clip": None})
    batch = prepared(algorithm, random_batch())
    sign = torch.where(torch.arange(7) % 2 == 0, 1.0, -1.0).double()  # by row
    sign[2] = sign[1]  # one trajectory
    advantage = torch.where(batch.action_mask, sign[:, None], 0.0)
    batch = replace(batch, advantage=advantage)
    beyond = (batch.logp_old + 0.5 * advantage).requires_grad_()  # ratio e^.5 up, e^−.5 down
    nothing = torch.zeros_like(advantage)
    torch.testing.assert_close(gradient(algorithm, batch, beyond), nothing, **EXACT)
    inside = (batch.logp_old - 0.5 * advantage).requires_grad_()
    assert gradient(algorithm, batch, inside)[batch.action_mask].ne(0).all()


def test_cispo_weighs_the_policy_gradient_by_the_clipped_ratio():
    # −min(ρ, 1.3)·A/M: a clipped token keeps its gradient.
    algorithm = with_fields("cispo", {"clip_high": 0.3})
    batch = prepared(algorithm, random_batch())
    logp = moved(batch).logp
    ratio = (logp.detach() - batch.logp_old).exp().clamp(max=1.3)
    expected = torch.where(batch.action_mask, -ratio * batch.advantage, 0.0) / batch.action_tokens
    torch.testing.assert_close(gradient(algorithm, batch, logp), expected, **FLOAT64)


def test_beyond_the_dual_clip_a_bad_token_has_no_gradient():
    algorithm = with_fields("grpo", {"dual_clip": 2.0})
    batch = replace(random_batch(), advantage=-random_batch().action_mask.double())
    far = (batch.logp_old + 1.0).requires_grad_()  # ratio e > 2
    near = (batch.logp_old + 0.5).requires_grad_()  # ratio 1.65 < 2
    assert not gradient(algorithm, batch, far).any()
    assert gradient(algorithm, batch, near)[batch.action_mask].ne(0).all()


@pytest.mark.parametrize("name", ["ppo", "step_ppo", "vl_dac"])
def test_the_value_head_learns_where_a_value_is_read(name):
    algorithm = with_fields(name, {})
    batch = prepared(algorithm, random_batch())
    outputs = moved(batch)
    value = outputs.value.requires_grad_()
    total = algorithm.loss(Outputs(outputs.logp, value, outputs.entropy), batch).total
    learned = torch.autograd.grad(total, value)[0] != 0
    if name == "ppo":
        assert torch.equal(learned, batch.action_mask)
    else:
        assert int(learned.sum()) == int(batch.turns)
        assert not learned[~batch.action_mask].any()
