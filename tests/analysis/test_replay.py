from __future__ import annotations

from itertools import combinations

import pyarrow.parquet as pq
import pytest
from tests.analysis.conftest import changed
from tests.tolerances import FLOAT64

from agentrecipes.analysis.replay import replay
from agentrecipes.analysis.stored import open_run
from agentrecipes.cli.replay import addressed
from agentrecipes.cli.run import recipe_of
from agentrecipes.errors import AgentRecipesError, RecipeError


def replayed(folder, *overrides: str):
    recipe = recipe_of(folder)
    return replay(open_run(folder), recipe_of(folder, addressed(recipe, overrides)))


def training_rows(folder):
    [path] = (folder / "tables" / "trajectories").glob("reinforce.+*")
    return [row for row in pq.read_table(path).to_pylist() if row["split"] == "train"]


@pytest.mark.parametrize("name", ["grpo", "weighted", "patchy"])
def test_without_a_change_everything_is_computed_again_to_the_last_bit(runs, name):
    found = replayed(runs / name)
    rows = training_rows(runs / name)
    assert found["trajectories"] == len(rows) == 48  # 3 iterations of 4 tasks, 4 attempts each
    assert found["identical"]
    assert (found["max_reward_gap"], found["max_advantage_gap"]) == (0.0, 0.0)
    assert found["flipped_pairs"] == found["sign_changes"] == found["not_replayed"] == []
    assert found["notes"] == []
    assert len({row["advantage_mean"] for row in rows}) > 5  # there was something to compute
    if name == "patchy":
        assert None in {row["total"] for row in rows}


def test_a_changed_weight_swaps_the_pairs_that_a_loop_over_the_table_finds(runs):
    found = replayed(runs / "grpo", "rewards[1].weight=-3.0")
    expected, gap = set(), 0.0
    rows = training_rows(runs / "grpo")
    again = {
        id(row): dict(row["parts"])["spread"] - 3 * dict(row["parts"])["brief"] for row in rows
    }
    for one, other in combinations(rows, 2):
        before, after = one["total"] - other["total"], again[id(one)] - again[id(other)]
        if one["group_id"] == other["group_id"] and before * after < 0:
            expected.add((one["group_id"], one["attempt"], other["attempt"]))
    gap = max(abs(again[id(row)] - row["total"]) for row in rows)
    assert {(pair["group"], *pair["attempts"]) for pair in found["flipped_pairs"]} == expected
    assert len(found["flipped_pairs"]) == len(expected) > 10
    assert found["max_reward_gap"] == pytest.approx(gap, abs=FLOAT64["atol"])
    assert not found["identical"]
    pair = found["flipped_pairs"][0]
    assert (pair["before"][0] - pair["before"][1]) * (pair["after"][0] - pair["after"][1]) < 0


def test_a_changed_weight_changes_the_sign_of_grpo_s_advantages(runs):
    found = replayed(runs / "grpo", "rewards.1.weight=-3.0")
    rows = training_rows(runs / "grpo")
    totals, groups = {}, {}
    for row in rows:
        key, parts = (row["group_id"], row["attempt"]), dict(row["parts"])
        totals[key] = parts["spread"] - 3 * parts["brief"]
        groups.setdefault(row["group_id"], []).append(totals[key])
    # An advantage of GRPO has the sign of the return less its group's mean.
    expected = {
        (row["group_id"], row["attempt"])
        for row in rows
        if row["advantage_mean"]
        * (totals[row["group_id"], row["attempt"]] - sum(groups[row["group_id"]]) / 4)
        < 0
    }
    assert {(one["group"], one["attempt"]) for one in found["sign_changes"]} == expected
    assert len(expected) > 5
    assert found["max_advantage_gap"] > 1.0


def test_another_algorithm_gives_other_advantages_and_the_same_rewards(runs):
    found = replayed(runs / "grpo", "algorithm.name=rloo")
    assert (found["identical"], found["max_reward_gap"]) == (False, 0.0)
    assert found["max_advantage_gap"] > 0.0
    assert found["flipped_pairs"] == found["sign_changes"] == []


@pytest.mark.parametrize(
    ("name", "override", "reason"),
    [
        ("ppo", "rewards[0].weight=1.0", "critic's values"),
        ("grpo", "algorithm.kl={place: reward, coefficient: 0.1}", "KL penalty"),
    ],
)
def test_what_cannot_be_replayed_is_said_and_rewards_are_replayed(runs, name, override, reason):
    found = replayed(runs / name, override)
    [left] = found["not_replayed"]
    assert (left["what"], left["iterations"]) == ("advantages", [0, 1, 2])
    assert reason in left["reason"]
    assert (found["identical"], found["max_reward_gap"]) == (True, 0.0)
    assert found["max_advantage_gap"] is None


def test_rewards_that_read_the_question_are_given_it_again(runs):
    # `half` is 0 for questions of odd length: a replay without questions would halve nothing.
    found = replayed(runs / "grpo", "rewards[0].half=true")
    assert not found["identical"]
    assert found["notes"] == []


def test_a_task_that_the_dataset_poses_differently_by_now_is_noted(copied):
    folder = copied("grpo")
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("world_seed: 0", "world_seed: 5"))
    found = replayed(folder)
    assert found["identical"]  # these rewards do not look at the question
    assert "not posed as they were" in found["notes"][0]


def test_a_changed_total_and_a_changed_advantage_show_as_gaps(copied):
    folder = copied("grpo")

    def change(rows) -> None:
        trained = [row for row in rows if row["split"] == "train"]
        for row in trained[3:4]:
            row["total"] += 0.25
        for row in trained[5:6]:
            row["advantage_mean"] -= 9.0

    changed(folder, "trajectories", change)
    found = replayed(folder)
    assert not found["identical"]
    assert found["max_reward_gap"] == pytest.approx(0.25, abs=FLOAT64["atol"])
    assert found["max_advantage_gap"] == pytest.approx(9.0, abs=FLOAT64["atol"])


def test_a_reward_that_turned_null_is_not_identical(copied):
    folder = copied("grpo")
    changed(folder, "trajectories", lambda rows: [row.update(total=None) for row in rows[-40:-30]])
    found = replayed(folder)
    assert (found["identical"], found["max_reward_gap"]) == (False, 0.0)


def test_a_killed_run_is_replayed_as_far_as_its_turns_are_stored(copied):
    folder = copied("grpo")
    (folder / "summary.json").unlink()

    def forget(rows) -> None:
        rows[:] = [row for row in rows if (row["split"], row["iteration"]) != ("train", 2)]

    changed(folder, "turns", forget)
    found = replayed(folder)
    assert (found["status"], found["trajectories"], found["identical"]) == ("unfinished", 32, True)
    [left] = found["not_replayed"]
    assert (left["what"], left["iterations"]) == ("trajectories", [2])


def test_a_run_that_has_stored_nothing_has_nothing_to_replay(copied):
    folder = copied("grpo")
    for path in (folder / "tables" / "trajectories").glob("*"):
        path.unlink()
    found = replayed(folder)
    assert (found["trajectories"], found["identical"], found["max_advantage_gap"]) == (0, True, 0.0)


def test_a_value_that_no_run_writes_is_named(copied):
    folder = copied("grpo")
    changed(folder, "trajectories", lambda rows: [row.update(stop="bored") for row in rows])
    with pytest.raises(AgentRecipesError, match=r"reinforce 0, train-\d+, attempt 0: .*'bored'"):
        replayed(folder)


def test_overrides_reach_the_collecting_stages_of_a_resolved_recipe(runs):
    recipe = recipe_of(runs / "grpo")
    assert addressed(recipe, ["rewards.1.weight=2", "algorithm.std=none"]) == [
        "stages.reinforce.rewards[1].weight=2",
        "stages.reinforce.algorithm.std=none",
    ]
    own = ["stages.reinforce.rewards[0].half=true"]
    assert addressed(recipe, own) == own


@pytest.mark.parametrize(
    "override",
    ["rollout.tasks=2", "seed=3", "stages.reinforce.optimizer.learning_rate=1", "rewardsx=1"],
)
def test_an_override_that_is_neither_reward_nor_algorithm_is_refused(runs, override):
    with pytest.raises(RecipeError, match=r"cannot be replayed\. Change rewards or algorithm"):
        replayed(runs / "grpo", override)


@pytest.mark.parametrize("override", ["rewards[1].wieght=2", "algorithm.name=grop"])
def test_a_misspelt_override_is_the_recipe_s_problem(runs, override):
    with pytest.raises(RecipeError, match="Did you mean"):
        replayed(runs / "grpo", override)
