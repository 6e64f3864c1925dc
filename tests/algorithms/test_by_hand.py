"""Losses and advantages of at most six tokens, each derived in a comment; asymmetric numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agentrecipes.testing import evaluate_algorithm
from tolerances import FLOAT64

# Row 0 has actions at 1 and 2, row 1 at 1 alone; 9.0 is noise off the mask.
MASK = np.array([[False, True, True], [False, True, False]])
OLD = np.zeros((2, 3))
GIVEN = np.array([[9.0, 1.0, 1.0], [9.0, -2.0, 9.0]])  # advantages
LOGP = np.log(np.array([[9.0, 1.5, 1.1], [9.0, 0.5, 9.0]]))  # ratios, as logp_old is 0
PLAIN = {"logp": LOGP, "logp_old": OLD, "action_mask": MASK, "advantages": GIVEN}
L15, L11, L05 = math.log(1.5), math.log(1.1), math.log(0.5)

# Clipped at .2 and .28: ρA = 1.5 → 1.28, 1.1, and min(.5·−2, .8·−2) = −1.6.
# Clipped at .2 and .2: 1.2, 1.1, −1.6.
LOSSES = [
    ({"name": "dapo"}, -(1.28 + 1.1 - 1.6) / 3),
    ({"name": "grpo"}, -((1.2 + 1.1) / 2 - 1.6) / 2),
    ({"name": "dr_grpo", "max_tokens": 5}, -(1.2 + 1.1 - 1.6) / (2 * 5)),
    ({"name": "rloo"}, -(1.2 + 1.1 - 1.6) / 3),
    ({"name": "rloo", "clip_high": None}, -(1.5 + 1.1 - 1.6) / 3),
    ({"name": "reinforce_pp"}, -(1.2 + 1.1 - 1.6) / 3),
    ({"name": "reinforce_pp_baseline", "clip_low": 0.6}, -(1.2 + 1.1 - 1.0) / 3),
    ({"name": "turn_grpo"}, -((1.2 + 1.1) / 2 - 1.6) / 2),
    ({"name": "gigpo"}, -((1.2 + 1.1) / 2 - 1.6) / 2),
    # s = √(1.5·1.1) = 1.28452 → 1.1, and .5·−2 against .9·−2.
    (
        {"name": "gspo", "clip_low": 0.1, "clip_high": 0.1},
        -((1.1 + 1.1) / 2 - 1.8) / 2,
    ),
    ({"name": "reinforce"}, -(L15 + L11 - 2 * L05) / 3),
    # Weights 1.3, 1.1 and .5.
    ({"name": "cispo", "clip_high": 0.3}, -(1.3 * L15 + 1.1 * L11 - 2 * 0.5 * L05) / 3),
    # (4/τ)·σ(τ(ρ − 1))·A with τ 1: 4·σ(.5) and 4·σ(.1); with τ 2: 2·σ(−1)·(−2).
    (
        {"name": "sapo", "tau_negative": 2.0},
        -((4 / (1 + math.exp(-0.5)) + 4 / (1 + math.exp(-0.1))) / 2 - 4 / (1 + math.e)) / 2,
    ),
]


@pytest.mark.parametrize(("spec", "expected"), LOSSES, ids=lambda x: str(x)[:40])
def test_the_loss_has_the_value_computed_by_hand(spec, expected):
    found = evaluate_algorithm(spec, PLAIN)
    np.testing.assert_allclose(found["loss"], expected, **FLOAT64)


# Row 0 is trajectory 0, with Δ = (ln 1.5 − ln 3) + (ln 1.1 − 0) = ln .55; row 1 has ln .5 − ln .25
# = ln 2. Returns 1 and 0, so the margin is ln .55 − ln 2 = ln .275, and with β 1 the loss is
# −ln(.275/1.275); its slope by each of the best's tokens −β·σ(−margin) = −1/1.275.
def test_dpo_is_the_logistic_loss_of_the_best_against_the_worst():
    reference = np.log(np.array([[9.0, 3.0, 1.0], [9.0, 0.25, 9.0]]))
    arrays = {"logp": LOGP, "logp_ref": reference, "action_mask": MASK}
    arrays |= {"returns": np.array([1.0, 0.0]), "group": np.array([4, 4])}
    found = evaluate_algorithm({"name": "dpo", "beta": 1.0}, arrays)
    np.testing.assert_allclose(found["loss"], -math.log(0.275 / 1.275), **FLOAT64)
    slope = 1 / 1.275
    right = [[0.0, -slope, -slope], [0.0, slope, 0.0]]
    np.testing.assert_allclose(found["gradient"], right, **FLOAT64)
    np.testing.assert_allclose(found["advantages"], [[0, 2, 2], [0, -2, 0]], **FLOAT64)
    assert found["terms"]["right_order"] == 0.0


def test_dpo_learns_nothing_from_equal_attempts_or_from_what_is_no_number():
    for returns in ([1.0, 1.0], [np.inf, 0.0], [np.nan, 0.0]):
        arrays = {"logp": LOGP, "logp_ref": OLD, "action_mask": MASK, "group": np.array([4, 4])}
        found = evaluate_algorithm({"name": "dpo"}, {**arrays, "returns": np.array(returns)})
        assert not found["gradient"].any()
        assert found["loss"] == 0.0


# Trajectory 0 (1.0) is a success, 1 (.9) is not: −(ln 1.5 + ln 1.1)/2, slope −1/2 each.
def test_rft_is_the_mean_over_the_tokens_of_successes():
    arrays = {"logp": LOGP, "action_mask": MASK, "returns": np.array([1.0, 0.9])}
    found = evaluate_algorithm({"name": "rft"}, arrays)
    np.testing.assert_allclose(found["loss"], -(L15 + L11) / 2, **FLOAT64)
    np.testing.assert_allclose(found["gradient"], [[0, -0.5, -0.5], [0, 0, 0]], **FLOAT64)
    np.testing.assert_allclose(found["terms"]["kept"], 2 / 3, **FLOAT64)
    infinite = evaluate_algorithm({"name": "rft"}, {**arrays, "returns": np.array([np.inf, 0.9])})
    assert not infinite["gradient"].any()


def test_balanced_rft_weighs_each_success_and_its_two_segments_alike():
    # Two successes of three. The first: thoughts -1, -2, calls -3; share .25:
    # .25 · 1.5 + .75 · 3 = 2.625. The second has no thought: its mean, 2. Their mean: 2.3125.
    logp = np.array([[-1.0, -2.0, -3.0], [-9.0, -9.0, -9.0], [-1.0, -3.0, 0.0]])
    segment = np.array([[1, 1, 2], [1, 2, 2], [2, 2, 0]])
    arrays = {"logp": logp, "action_mask": segment > 0, "segment": segment}
    arrays["returns"] = np.array([1.0, 0.0, 1.0])
    found = evaluate_algorithm({"name": "rft", "balance": 0.25}, arrays)
    np.testing.assert_allclose(found["loss"], 2.3125, **FLOAT64)
    # -∂L/∂logp: .25 / 2 / 2 on each thought of the first, .75 / 2 on its call, 1 / 2 / 2.
    expected = [[-0.0625, -0.0625, -0.375], [0, 0, 0], [-0.25, -0.25, 0]]
    np.testing.assert_allclose(found["gradient"], expected, **FLOAT64)
    del arrays["segment"]
    with pytest.raises(ValueError, match="needs every token's segment"):
        evaluate_algorithm({"name": "rft", "balance": 0.25}, arrays)


def test_ppo_adds_half_the_squared_value_error():
    # R = A + V_old = 1 + .5, 1 − .5, −2 + 0 = 1.5, .5, −2. V = 1.5, 2.5, −1: errors 0, 2, 1; the
    # clip of 1 moves the second V to .5 (error 0, the larger counts) and no other.
    # Value loss ½(0 + 4 + 1)/3, policy loss −(1.2 + 1.1 − 1.6)/3.
    old = np.array([[9.0, 0.5, -0.5], [9.0, 0.0, 9.0]])
    value = np.array([[9.0, 1.5, 2.5], [9.0, -1.0, 9.0]])
    arrays = {**PLAIN, "values": value, "values_old": old}
    spec = {"name": "ppo", "value_clip": 1.0, "value_coefficient": 0.3}
    found = evaluate_algorithm(spec, arrays)
    np.testing.assert_allclose(found["loss"], -0.7 / 3 + 0.3 * 2.5 / 3, **FLOAT64)


def test_a_value_that_moved_too_far_counts_with_the_larger_error():
    # V_old 0, R 1 (A 1), V 1: error 0; clipped to .2 it is .8, which is larger: ½·.64.
    mask = np.array([[True]])
    arrays = {"logp": np.zeros((1, 1)), "action_mask": mask, "advantages": np.ones((1, 1))}
    arrays |= {"values": np.ones((1, 1)), "values_old": np.zeros((1, 1))}
    spec = {"name": "ppo", "value_clip": 0.2, "value_coefficient": 1.0}
    found = evaluate_algorithm(spec, arrays)
    np.testing.assert_allclose(found["loss"], -1.0 + 0.32, **FLOAT64)


def test_kl_entropy_and_importance_each_add_their_term():
    # Objective 1.2, 1.1, −1.6 times weights min(e^.5, 1.3) = 1.3, e^−.1, 1; k2 with d = logp − .2;
    # entropy 1, 2, 3.
    rollout = np.array([[9.0, -0.5, 0.1], [9.0, 0.0, 9.0]])
    entropy = np.array([[9.0, 1.0, 2.0], [9.0, 3.0, 9.0]])
    arrays = {**PLAIN, "logp_rollout": rollout, "logp_ref": OLD + 0.2, "entropy": entropy}
    spec = {
        "name": "rloo",
        "importance": {"cap": 1.3},
        "entropy": 0.1,
        "kl": {"place": "loss", "estimator": "k2", "coefficient": 0.5},
    }
    policy = -(1.3 * 1.2 + math.exp(-0.1) * 1.1 - 1.6) / 3
    kl = ((L15 - 0.2) ** 2 + (L11 - 0.2) ** 2 + (L05 - 0.2) ** 2) / 2 / 3
    found = evaluate_algorithm(spec, arrays)
    np.testing.assert_allclose(found["loss"], policy + 0.5 * kl - 0.1 * 2.0, **FLOAT64)
    np.testing.assert_allclose(found["terms"]["kl"], kl, **FLOAT64)
    np.testing.assert_allclose(found["terms"]["clip_fraction"], 2 / 3, **FLOAT64)


def test_sft_is_the_weighted_cross_entropy():
    # Actions weigh 1, the three other tokens .5: −(ln 1.5 + ln 1.1 + ln .5 + .5·3·ln 9)/(3 + 1.5).
    spec = {"name": "sft", "observation_weight": 0.5}
    found = evaluate_algorithm(spec, {"logp": LOGP, "action_mask": MASK})
    expected = -(L15 + L11 + L05 + 1.5 * math.log(9)) / 4.5
    np.testing.assert_allclose(found["loss"], expected, **FLOAT64)
    weights = np.where(MASK, 1.0, 0.5)
    np.testing.assert_allclose(found["gradient"], -weights / 4.5, **FLOAT64)


# One row: actions at 0, 1 | 3, 4 (turns 0 and 1), an observation between.
ROW = np.array([[True, True, False, True, True]])
TURNS = np.array([[0, 0, 0, 1, 1]])


def advantages(spec, rows=ROW, **arrays: np.ndarray):
    logp = np.zeros(rows.shape)
    given = {"logp": logp, "action_mask": rows, "values": logp, **arrays}
    given |= {} if "turn_index" in arrays else {"turn_index": np.repeat(TURNS, len(rows), axis=0)}
    return evaluate_algorithm(spec, given)["advantages"]


def test_gae_runs_over_action_tokens_as_published():
    # γ .5, λ 1, V 0, labels P P O O P, reward 1 at the end: .25, .5, 1; unpacked .0625, .125, 1.
    mask = np.array([[True, True, False, False, True]])
    spec = {"name": "ppo", "gamma": 0.5, "whiten": False}
    found = advantages(spec, mask, returns=np.array([1.0]))
    np.testing.assert_allclose(found, [[0.25, 0.5, 0, 0, 1]], **FLOAT64)


def test_a_turns_reward_is_on_its_last_action_token():
    # Rewards 2 on token 1 and −1 on token 4; γ 1: 2 − 1, 2 − 1 | −1, −1.
    spec = {"name": "reinforce"}
    found = advantages(spec, turn_rewards=np.array([[2.0, -1.0]]))
    np.testing.assert_allclose(found, [[1, 1, 0, -1, -1]], **FLOAT64)


def test_a_kl_penalty_is_taken_off_each_tokens_reward():
    # k1 = logp_old − logp_ref = .2 on each token, times .5; reward 1 at the end.
    # From the last token back: .9, .8, .7, .6.
    spec = {"name": "reinforce", "kl": {"place": "reward", "coefficient": 0.5}}
    found = advantages(spec, returns=np.array([1.0]), logp_ref=np.full(ROW.shape, -0.2))
    np.testing.assert_allclose(found, [[0.6, 0.7, 0, 0.8, 0.9]], **FLOAT64)


def test_a_step_has_one_advantage_from_its_first_value():
    # V at the first token of each turn: .2 and .5 (the others are noise). γ 1, λ .5; r 1, 2.
    # δ_1 = 2 − .5 = 1.5; δ_0 = 1 + .5 − .2 = 1.3; A_0 = 1.3 + .5·1.5 = 2.05.
    values = np.array([[0.2, 9.0, 9.0, 0.5, 9.0]])
    spec = {"name": "step_ppo", "lam": 0.5, "whiten": False}
    found = advantages(spec, values=values, turn_rewards=np.array([[1.0, 2.0]]))
    np.testing.assert_allclose(found, [[2.05, 2.05, 0, 1.5, 1.5]], **FLOAT64)


def test_a_step_values_loss_is_a_mean_over_turns():
    # Targets A + V_old = 2.25 and 2.0 at tokens 0 and 3; V .25 and 1: ½(4 + 1)/2 turns.
    values = np.array([[0.25, 9.0, 9.0, 1.0, 9.0]])
    old = np.array([[0.2, 9.0, 9.0, 0.5, 9.0]])
    arrays = {"logp": np.zeros(ROW.shape), "action_mask": ROW, "turn_index": TURNS}
    arrays |= {"values": values, "values_old": old, "turn_rewards": np.array([[1.0, 2.0]])}
    spec = {"name": "step_ppo", "lam": 0.5, "whiten": False, "value_coefficient": 1.0}
    found = evaluate_algorithm(spec, arrays)
    np.testing.assert_allclose(found["terms"]["value"], 1.25, **FLOAT64)


def test_turn_grpo_discounts_later_turns_and_the_outcome():
    # Group of two, std none. Turn 0: 3, 1 → A^I ±1; outcome 0, 4 → A^O ∓2; γ .5.
    # Trajectory 0: turn 0 has 1 + .5·(−2) = 0, turn 1 has −2. Trajectory 1: −1 + .5·2 = 0, and 2.
    spec = {"name": "turn_grpo", "gamma": 0.5, "std": "none"}
    arrays = {"turn_rewards": np.array([[3.0, 0.0], [1.0, 4.0]]), "group": np.zeros(2, int)}
    found = advantages(spec, np.repeat(ROW, 2, axis=0), **arrays)
    np.testing.assert_allclose(found, [[0, 0, 0, -2, -2], [0, 0, 0, 2, 2]], **FLOAT64)


def test_gigpo_compares_turns_that_began_in_the_same_state():
    # Returns 3 and 5, std none: A^E −1, +1. γ .5: turn returns 3 + .5·0 = 3, 0 | 1 + .5·4 = 3, 4.
    # States: 7, 8 | 8, 8. State 8 holds 0, 3 and 4, mean 7/3; state 7 stands alone. ω 3.
    spec = {"name": "gigpo", "gamma": 0.5, "std": "none", "step_weight": 3.0}
    arrays = {"turn_rewards": np.array([[3.0, 0.0], [1.0, 4.0]]), "group": np.zeros(2, int)}
    states = np.array([[7, 8], [8, 8]])
    found = advantages(spec, np.repeat(ROW, 2, axis=0), **arrays, turn_state=states)
    expected = [[-1, -1, 0, -8, -8], [3, 3, 0, 6, 6]]
    np.testing.assert_allclose(found, expected, **FLOAT64)
