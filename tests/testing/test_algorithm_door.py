"""The door for outside checks: what it needs, gives, and says when something is missing."""

from __future__ import annotations

import numpy as np
import pytest

from agentrecipes.components import names
from agentrecipes.testing import evaluate_algorithm
from tolerances import EXACT, FLOAT32, FLOAT64


def arrays(dtype=np.float64):
    """Four rows of two groups, seven tokens, with everything that any algorithm needs."""
    random = np.random.default_rng(3)
    mask = random.random((4, 7)) < 0.6
    mask[:, 2] = True
    tokens = ("logp", "logp_old", "logp_ref", "logp_rollout", "values", "values_old", "entropy")
    given = {name: random.normal(size=mask.shape).astype(dtype) for name in tokens}
    turns = {"turn_index": np.tile(np.arange(7) // 4, (4, 1)), "turn_state": np.ones((4, 2), int)}
    by_turn = random.normal(size=(4, 2))
    rewards = {"turn_rewards": by_turn, "returns": by_turn.sum(axis=1)}
    return {**given, **turns, **rewards, "action_mask": mask, "group": np.array([5, 5, 2, 2])}


@pytest.mark.parametrize("name", names("algorithm"))
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_type_of_logp_is_that_of_the_answer(name, dtype):
    given = arrays(dtype)
    found = evaluate_algorithm({"name": name}, given)
    double = evaluate_algorithm(
        {"name": name},
        {k: v.astype(np.float64) if v.dtype == dtype else v for k, v in given.items()},
    )
    assert isinstance(found["loss"], float)
    for key in ("gradient", "advantages"):
        assert found[key].dtype == dtype
        assert found[key].shape == (4, 7)
        assert not found[key][~given["action_mask"]].any()
        np.testing.assert_allclose(found[key], double[key], **FLOAT32)


@pytest.mark.parametrize(
    ("spec", "missing"),
    [
        ({"name": "ppo"}, "values"),
        ({"name": "grpo"}, "group"),
        ({"name": "grpo"}, "returns"),
        ({"name": "grpo", "kl": {"place": "loss"}}, "logp_ref"),
        ({"name": "grpo", "kl": {"place": "reward"}}, "logp_ref"),
        ({"name": "grpo", "importance": {}}, "logp_rollout"),
        ({"name": "step_ppo"}, "turn_index"),
        ({"name": "gigpo"}, "turn_state"),
        ({"name": "sft"}, "logp"),
        ({"name": "sft"}, "action_mask"),
        ({"name": "ppo", "entropy": 0.1}, "entropy"),
    ],
    ids=str,
)
def test_a_missing_array_is_named(spec, missing):
    given = arrays()
    for name in (missing, f"{missing}_old", "turn_rewards" if missing == "returns" else missing):
        given.pop(name, None)
    with pytest.raises(ValueError, match=rf"{spec['name']} needs '{missing}'"):
        evaluate_algorithm(spec, given)


def test_arrays_that_an_algorithm_does_not_need_may_be_absent():
    given = {k: v for k, v in arrays().items() if k in ("logp", "action_mask", "returns", "group")}
    assert evaluate_algorithm({"name": "grpo"}, given)["advantages"].any()
    del given["group"]
    assert evaluate_algorithm({"name": "reinforce"}, given)["advantages"].any()


def test_an_unknown_array_or_part_is_refused_with_a_guess():
    with pytest.raises(
        ValueError, match=r"no array is called 'logp_olds'\. Did you mean 'logp_old'"
    ):
        evaluate_algorithm({"name": "grpo"}, {"logp_olds": np.zeros((1, 1))})
    with pytest.raises(ValueError, match="no algorithm is called 'grppo'"):
        evaluate_algorithm({"name": "grppo"}, arrays())


def test_arrays_of_two_shapes_are_refused():
    with pytest.raises(ValueError, match=r"logp_old has shape \(4, 6\), but action_mask \(4, 7\)"):
        evaluate_algorithm({"name": "grpo"}, {**arrays(), "logp_old": np.zeros((4, 6))})


def test_given_advantages_replace_the_algorithms_own():
    given = {**arrays(), "advantages": np.full((4, 7), 2.0)}
    found = evaluate_algorithm({"name": "reinforce"}, given)
    expected = np.where(given["action_mask"], -2.0 / given["action_mask"].sum(), 0.0)
    np.testing.assert_allclose(found["gradient"], expected, **FLOAT64)


def test_rows_may_be_parts_of_one_trajectory():
    # Rows 0 and 1 are one trajectory: three trajectories, the first alone in its group.
    given = arrays() | {"trajectory": np.array([0, 0, 1, 2]), "group": np.array([0, 1, 1])}
    del given["turn_rewards"]
    given["returns"] = np.array([1.0, 2.0, 4.0])
    found = evaluate_algorithm({"name": "grpo", "std": "none"}, given)["advantages"]
    by_row = [row[mask][0] for row, mask in zip(found, given["action_mask"], strict=True)]
    np.testing.assert_allclose(by_row, [0.0, 0.0, -1.0, 1.0], **EXACT)


def test_a_row_without_action_tokens_does_not_count():
    given = {**arrays(), "advantages": np.ones((4, 7))}
    given["action_mask"][3] = False
    given["logp"] = given["logp_old"]
    found = evaluate_algorithm({"name": "grpo"}, given)
    np.testing.assert_allclose(found["loss"], -1.0, **FLOAT64)
