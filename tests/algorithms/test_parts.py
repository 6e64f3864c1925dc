"""Rewards that are normalised one by one, and outcome and process rewards side by side."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.tolerances import FLOAT64

from agentrecipes.components import build
from agentrecipes.recipe.load import check
from agentrecipes.testing import evaluate_algorithm
from agentrecipes.testing.algorithm_suite import random_batch

TOKENS = np.array([[1, 1, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 1]], dtype=bool)


def advantages(name="grpo", mask=TOKENS, **arrays: object):
    """(B, T) advantages of four trajectories of one group."""
    fixed = {"action_mask": mask, "logp": np.full(mask.shape, -1.0)}
    fields = arrays.pop("fields", {})
    spec = {"name": name, "normalise": "parts", **fields}
    return evaluate_algorithm(spec, {**fixed, "group": np.zeros(4, int), **arrays})["advantages"]


def test_each_reward_is_compared_by_itself_and_the_sum_is_whitened():
    # r_1 = 1 0 0 0: μ 1/4, σ 1/2: 1.5 -0.5 -0.5 -0.5.  r_2 = 0 0 0 100: -0.5 -0.5 -0.5 1.5.
    # 1 · A_1 + 3 · A_2 = 0 -2 -2 4, on 3, 1, 2 and 4 tokens: mean (0·3 - 2·3 + 4·4) / 10 = 1;
    # squares about it: 3 · 1 + 3 · 9 + 4 · 9 = 66, over 9.
    parts = np.array([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 100.0]])
    found = advantages(parts=parts, part_weights=np.array([1.0, 3.0]), fields={"epsilon": 0.0})
    scale = math.sqrt(66 / 9 + 1e-8)
    expected = np.array([-1.0, -3.0, -3.0, 3.0])[:, None] / scale * TOKENS
    np.testing.assert_allclose(found, expected, **FLOAT64)


@pytest.mark.parametrize("name", ["grpo", "dapo", "dr_grpo", "gspo", "cispo", "sapo"])
def test_a_reward_with_a_great_spread_does_not_drown_another(name):
    # Trajectories 1 and 2 differ by 0.01 in the small reward alone; beside 100 that is nothing.
    parts = np.array([[0.00, 0.0], [0.01, 0.0], [0.00, 100.0], [0.01, 100.0]])
    whole = TOKENS | True
    fields = {} if name == "dr_grpo" else {"std": "sample"}
    apart = advantages(name, mask=whole, parts=parts, fields=fields)[:, 0]
    returns = parts.sum(axis=1)
    arrays = {"action_mask": whole, "logp": np.full(whole.shape, -1.0)}
    arrays |= {"group": np.zeros(4, int), "returns": returns}
    summed = evaluate_algorithm({"name": name}, arrays)["advantages"][:, 0]
    share = abs(apart[1] - apart[0]) / abs(apart[2] - apart[0])
    drowned = abs(summed[1] - summed[0]) / abs(summed[2] - summed[0])
    assert drowned < 1e-3
    assert share == pytest.approx(1e-4 if name == "dr_grpo" else 1.0, rel=1e-2)


def test_a_group_that_is_alike_in_everything_stays_at_zero():
    batch = random_batch()
    alike = batch.part_returns.clone()
    alike[batch.group == 1] = 0.25
    part = build("algorithm", {"name": "grpo", "normalise": "parts"})
    found = part.advantages(replace(batch, part_returns=alike))
    rows = batch.group[batch.trajectory] == 1
    assert not found[rows].any()
    assert found[~rows][batch.action_mask[~rows]].all()
    summed = found[batch.action_mask].sum()
    assert abs(float(summed)) < 1e-9


def test_a_null_reward_leaves_its_trajectory_out_and_the_others_compared():
    parts = np.array([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [5.0, np.nan]])
    returns = np.array([1.0, 2.0, 0.0, np.nan])
    with_null = advantages(parts=parts, returns=returns)
    assert not with_null[3].any()
    assert np.isfinite(with_null).all()
    assert with_null[0, 0] > with_null[2, 0]


def test_outcome_and_process_rewards_combine_and_neither_erases_the_other():
    # Two turns of two tokens. Outcomes are alike in trajectories 0 and 1, and in 2 and 3; the
    # reward of the first turn differs within each pair.
    outcome, process = [1.0, 1.0, 0.0, 0.0], [0.5, 0.0, 0.5, 0.0]
    mask = np.ones((4, 4), dtype=bool)
    turn_index = np.tile([0, 0, 1, 1], (4, 1))
    arrays = {
        "action_mask": mask,
        "logp": np.full((4, 4), -1.0),
        "group": np.zeros(4, int),
        "turn_index": turn_index,
        "turn_rewards": np.array([process, outcome]).T,
        "parts": np.array([process, outcome]).T,
    }
    for spec in ({"name": "turn_grpo"}, {"name": "grpo"}, {"name": "grpo", "normalise": "parts"}):
        found = evaluate_algorithm(spec, arrays)["advantages"]
        first = found[:, 0]
        assert first[0] > first[1], spec  # process, at an equal outcome
        assert first[2] > first[3], spec
        assert first[0] > first[2], spec  # outcome, at an equal process
        assert first[1] > first[3], spec
    by_turn = evaluate_algorithm({"name": "turn_grpo"}, arrays)["advantages"]
    # The second turn answers for the outcome alone: 1 1 0 0 has μ 1/2 and σ √(1/3).
    expected = np.array([0.5, 0.5, -0.5, -0.5]) / (math.sqrt(1 / 3) + 1e-6)
    np.testing.assert_allclose(by_turn[:, 2], expected, **FLOAT64)


def test_a_kl_penalty_in_the_reward_is_no_reward_of_its_own(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(
        "name: small\nmodel: tiny\nenvironment: {name: search, dataset: world}\n"
        "rewards: [exact_match]\niterations: 5\n"
        "algorithm: {name: grpo, normalise: parts, kl: {place: reward, coefficient: 0.1}}\n"
    )
    _, [problem] = check(path)
    assert (problem.code, problem.path, problem.line) == ("contradiction", "algorithm.normalise", 6)


def test_the_parts_of_a_batch_are_those_of_the_trajectories():
    from agentrecipes.records import Scored
    from agentrecipes.training.batch import part_returns

    weights = {"a": 2.0, "b": 1.0}
    rows = [{"b": 3.0, "a": 1.0}, {"a": None, "b": 0.5}]
    table = part_returns([Scored(None, row, None, (), weights=weights) for row in rows])
    assert torch.equal(torch.isnan(table), torch.tensor([[False, False], [True, False]]))
    assert table.nan_to_num(-1.0).tolist() == [[1.0, 3.0], [-1.0, 0.5]]
