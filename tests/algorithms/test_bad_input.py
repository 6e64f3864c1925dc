"""What algorithms do with what should not be: it teaches nothing, and nothing becomes NaN."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from pydantic import ValidationError

from agentrecipes.algorithms.protocol import Outputs
from agentrecipes.components import build, find, names
from agentrecipes.testing import evaluate_algorithm
from agentrecipes.testing.algorithm_suite import moved, prepared, random_batch
from algorithms.test_suite import PENALTY, TERMS, with_fields
from tolerances import EXACT, FLOAT64

COLLECTING = [name for name in names("algorithm") if not with_fields(name, {}).needs.demonstrations]
GROUPED = [name for name in COLLECTING if with_fields(name, {}).needs.groups]
WRONG = [math.nan, math.inf, -math.inf]
BROKEN = 3  # a trajectory, whose row is the fourth of seven, alone


def total_and_slope(algorithm, batch, outputs=None):
    outputs = outputs or moved(batch)
    total = algorithm.loss(outputs, batch).total
    [slope] = torch.autograd.grad(total, outputs.logp, allow_unused=True, materialize_grads=True)
    return total.detach(), slope


def broken_by(value, batch):
    returns, by_turn = batch.returns.clone(), batch.turn_rewards.clone()
    returns[BROKEN], by_turn[BROKEN, 1] = value, value
    return replace(batch, returns=returns, turn_rewards=by_turn)


@pytest.mark.parametrize("variant", [{}, TERMS, PENALTY], ids=["plain", "terms", "penalty"])
@pytest.mark.parametrize("name", COLLECTING)
def test_groups_of_one_teach_what_compares_attempts_nothing(name, variant):
    algorithm = with_fields(name, variant)
    alone = replace(random_batch(), group=torch.arange(6))
    batch = prepared(algorithm, alone)
    total, slope = total_and_slope(algorithm, batch)
    assert torch.isfinite(total)
    assert torch.isfinite(slope).all()
    if name in GROUPED and variant is not PENALTY:
        plain = with_fields(name, {"step_weight": 0.0}).advantages(alone)  # gigpo: states meet
        torch.testing.assert_close(plain, torch.zeros_like(plain), **EXACT)


@pytest.mark.parametrize("name", COLLECTING)
def test_a_batch_of_equal_returns_stays_finite(name):
    algorithm = with_fields(name, {"at_least": 5.0})
    empty = torch.zeros(0, dtype=torch.float64)
    equal = replace(random_batch(), returns=torch.full((6,), 0.3).double(), turn_rewards=empty)
    batch = prepared(algorithm, equal)
    total, slope = total_and_slope(algorithm, batch)
    assert torch.isfinite(total)
    assert torch.isfinite(slope).all()
    if name in GROUPED:
        plain = with_fields(name, {"step_weight": 0.0}).advantages(equal)
        torch.testing.assert_close(plain, torch.zeros_like(plain), **EXACT)


@pytest.mark.parametrize("value", WRONG, ids=str)
@pytest.mark.parametrize("variant", [{}, TERMS, PENALTY], ids=["plain", "terms", "penalty"])
@pytest.mark.parametrize("name", COLLECTING)
def test_a_reward_that_is_no_finite_number_has_no_advantage_and_changes_no_others(
    name, variant, value
):
    algorithm, whole = with_fields(name, variant), random_batch()
    found = prepared(algorithm, broken_by(value, whole))
    other = prepared(algorithm, broken_by(math.nan, whole))
    torch.testing.assert_close(found.advantage, other.advantage, **EXACT)
    assert not found.advantage[4].any()  # the row of that trajectory
    assert torch.isfinite(found.value_target).all()
    total, slope = total_and_slope(algorithm, found)
    assert torch.isfinite(total)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("name", GROUPED)
def test_the_others_of_a_group_are_compared_without_the_one_that_has_no_reward(name):
    algorithm = with_fields(name, {"gamma": 1.0, "step_weight": 0.0, "whiten": False})
    empty = torch.zeros(0, dtype=torch.float64)
    whole = replace(random_batch(), turn_rewards=empty)
    returns = whole.returns.clone()
    returns[BROKEN] = math.nan
    found = algorithm.advantages(replace(whole, returns=returns))
    group = whole.group.clone()
    group[BROKEN] = 9  # a group of its own
    expected = algorithm.advantages(replace(whole, group=group))
    torch.testing.assert_close(found, expected, **FLOAT64)


@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("value", WRONG, ids=str)
@pytest.mark.parametrize(
    "name", [n for n in COLLECTING if "importance" in find("algorithm", n).model_fields]
)
def test_a_token_whose_sampled_log_probability_is_no_number_is_dropped(name, value, level):
    algorithm = with_fields(name, {"importance": {"cap": 2.0, "level": level}, "kl": {}})
    batch = prepared(algorithm, random_batch())
    place = tuple(batch.action_mask.nonzero()[2].tolist())
    rollout = batch.logp_rollout.clone()
    rollout[place] = value
    total, slope = total_and_slope(algorithm, replace(batch, logp_rollout=rollout))
    assert torch.isfinite(total)
    assert torch.isfinite(slope).all()
    if name != "gspo":  # there a token's log-probability is in its trajectory's ratio
        assert slope[place] == 0.0


@pytest.mark.parametrize("far", [-1e4, 1e4])
@pytest.mark.parametrize("variant", [{}, TERMS, PENALTY], ids=["plain", "terms", "penalty"])
@pytest.mark.parametrize("name", COLLECTING)
def test_log_probabilities_that_are_far_apart_overflow_nothing(name, variant, far):
    algorithm, whole = with_fields(name, variant), random_batch()
    single = {
        field: getattr(whole, field).float()
        for field in ("logp_old", "logp_rollout", "logp_ref", "values_old", "token_weight")
    }
    batch = replace(whole, **single)
    distant = replace(batch, logp_ref=batch.logp_ref + far, logp_rollout=batch.logp_rollout + far)
    outputs = moved(whole)
    logp = (outputs.logp.detach().float() - far).requires_grad_()
    batch = prepared(algorithm, distant)
    outputs = Outputs(logp, outputs.value.float(), outputs.entropy.float())
    total, slope = total_and_slope(algorithm, batch, outputs)
    assert torch.isfinite(total)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize("name", ["ppo", "step_ppo", "vl_dac"])
def test_a_critic_without_a_value_head_is_refused(name):
    algorithm = with_fields(name, {})
    batch = prepared(algorithm, random_batch())
    with pytest.raises(ValueError, match=f"{name} needs a value head"):
        algorithm.loss(replace(moved(batch), value=None), batch)
    mask = batch.action_mask.numpy()
    arrays = {"logp": batch.logp_old.numpy(), "logp_ref": batch.logp_ref.numpy()}
    arrays |= {"action_mask": mask, "returns": batch.returns[batch.trajectory].numpy()}
    arrays |= {"turn_index": batch.turn_index.numpy().clip(0)}
    with pytest.raises(ValueError, match=f"{name} needs 'values'"):
        evaluate_algorithm({"name": name}, arrays)


def test_entropy_that_was_not_computed_is_refused():
    algorithm = with_fields("grpo", {"entropy": 0.1})
    batch = prepared(algorithm, random_batch())
    with pytest.raises(ValueError, match="grpo needs the entropy of every action token"):
        algorithm.loss(replace(moved(batch), entropy=None), batch)


OUT_OF_RANGE = {
    "clip_low": [-0.1, 1.1],
    "clip_high": [-0.1],
    "dual_clip": [1.0, 0.5],
    "max_tokens": [0, -1],
    "epsilon": [-1e-6],
    "gamma": [-0.1, 1.1],
    "lam": [-0.1, 1.1],
    "value_clip": [0.0, -1.0],
    "value_coefficient": [-0.5],
    "entropy": [-0.01],
    "tau_positive": [0.0, -1.0],
    "tau_negative": [0.0, -1.0],
    "step_weight": [-1.0],
    "beta": [0.0, -0.1],
    "observation_weight": [-0.1],
    "balance": [-0.1, 1.1],
}
NESTED = [
    ({"kl": {"place": "loss", "coefficient": value}}, "coefficient") for value in (-0.1, *WRONG)
]
NESTED += [({"kl": {"place": "loss", "target": value}}, "target") for value in (0.0, *WRONG)]
NESTED += [({"kl": {"place": "loss", "horizon": value}}, "horizon") for value in (0.0, *WRONG)]
NESTED += [({"importance": {"cap": value}}, "cap") for value in (0.0, -1.0, *WRONG)]


def wrong_fields():
    for name in names("algorithm"):
        known = find("algorithm", name).model_fields
        for field, values in OUT_OF_RANGE.items():
            if field in known:
                more = () if field == "max_tokens" else WRONG
                yield from ((name, {field: value}, field) for value in (*values, *more))
        yield from (
            (name, spec, field) for spec, field in NESTED if {"kl", "importance"} <= set(known)
        )


@pytest.mark.parametrize(("name", "spec", "field"), list(wrong_fields()), ids=str)
def test_a_coefficient_out_of_range_is_refused(name, spec, field):
    with pytest.raises(ValidationError, match=field):
        build("algorithm", {"name": name, **spec})


def test_every_number_of_an_algorithm_has_a_range():
    numbers = {
        field
        for name in names("algorithm")
        for field, info in find("algorithm", name).model_fields.items()
        if {"float", "int"}
        & {word.strip() for word in str(info.annotation).replace("|", " ").split()}
        or info.annotation in (int, float)
    }
    assert numbers <= {*OUT_OF_RANGE, "at_least"}  # any total may be a success
