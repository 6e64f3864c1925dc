from __future__ import annotations

import json
import math
import shutil

import pyarrow.parquet as pq
import pytest
from tests.tolerances import FLOAT64
from tests.tracking.made import scored, turn

from agentrecipes.analysis.diff import diff
from agentrecipes.analysis.divergence import first_divergence
from agentrecipes.analysis.intervals import metric_differences, paired, reward_differences
from agentrecipes.errors import AgentRecipesError, RecipeError
from agentrecipes.records import EvaluationRow, Place
from agentrecipes.tracking.tables import Tables

STAGES = ("warm", "reinforce")  # not in the order of their names


def written(folder, trajectories, *, stage="reinforce", iteration=0, split="train"):
    """A run's folder with these trajectories in its tables."""
    tables = Tables(folder / "tables", folder.name)
    tables.trajectories(trajectories, Place(stage, iteration, split, "sampled"))
    assert tables.lost == []
    return folder


def one_turn(*action: int, task="t0", prompt=(1, 2), observation=(), attempt=0):
    return scored(task, attempt, turns=(turn(prompt, action, observation),), group=f"0-{task}")


# The first divergent token.


def test_the_first_divergent_token_is_named_with_both_ids(tmp_path):
    a = written(tmp_path / "a", [one_turn(7, 8, 9), one_turn(4, attempt=1)])
    b = written(tmp_path / "b", [one_turn(7, 5, 9), one_turn(3, attempt=1)])
    assert first_divergence(a, b, STAGES) == {
        **{"stage": "reinforce", "iteration": 0, "task": "t0", "group": "0-t0"},
        **{"attempt": 0, "turn": 0, "part": "action", "token": 1, "a": 8, "b": 5},
        **{"a_text": "act", "b_text": "act"},
    }


@pytest.mark.parametrize(
    ("one", "other", "part", "token", "a", "b"),
    [
        (one_turn(7, prompt=(1, 2)), one_turn(6, prompt=(1, 3)), "prompt", 1, 2, 3),
        (one_turn(7, 8), one_turn(7), "action", 1, 8, None),
        (one_turn(7, observation=(5,)), one_turn(7, observation=(5, 6)), "observation", 1, None, 6),
    ],
)
def test_prompts_come_before_actions_and_what_is_longer_diverges_at_its_end(
    tmp_path, one, other, part, token, a, b
):
    found = first_divergence(
        written(tmp_path / "a", [one]), written(tmp_path / "b", [other]), STAGES
    )
    assert [found[key] for key in ("part", "token", "a", "b")] == [part, token, a, b]


def test_rows_are_compared_in_the_order_stage_iteration_group_attempt_turn(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    for folder, first in ((a, 1), (b, 2)):
        # Everything below differs; each line removes the earliest difference of the one before.
        written(folder, [one_turn(first)], stage="reinforce", iteration=0)
        written(folder, [one_turn(first)], stage="warm", iteration=10)
        late = [one_turn(first, task="t9"), one_turn(7, task="t1"), one_turn(first, attempt=1)]
        written(folder, late, stage="warm", iteration=2)
    found = first_divergence(a, b, STAGES)
    assert [found[key] for key in ("stage", "iteration", "task", "attempt")] == ["warm", 2, "t0", 1]


def test_the_order_in_which_rows_were_written_does_not_matter(tmp_path):
    rows = [one_turn(7), one_turn(8, attempt=1)]
    a, b = written(tmp_path / "a", rows), written(tmp_path / "b", rows[::-1])
    assert first_divergence(a, b, STAGES) is None


def test_a_turn_that_one_run_lacks_has_no_token_there(tmp_path):
    a = written(tmp_path / "a", [one_turn(7), one_turn(8, attempt=1)])
    b = written(tmp_path / "b", [one_turn(7)])
    found = first_divergence(a, b, STAGES)
    assert (found["attempt"], found["token"], found["a"], found["b"]) == (1, 0, 1, None)
    assert (found["a_text"], found["b_text"]) == ("act", None)
    mirrored = first_divergence(b, a, STAGES)
    assert (mirrored["a"], mirrored["b"]) == (None, 1)


def test_evaluations_are_no_training_rows(tmp_path):
    a = written(tmp_path / "a", [one_turn(7)], split="dev")
    b = written(tmp_path / "b", [one_turn(8)], split="dev")
    assert first_divergence(a, b, STAGES) is None


def test_a_damaged_table_is_named(tmp_path):
    a = written(tmp_path / "a", [one_turn(7)])
    [path] = (a / "tables" / "turns").glob("*.parquet")
    path.write_bytes(b"PAR1 no more")
    with pytest.raises(AgentRecipesError, match=r"reinforce\.000000.*the file is damaged"):
        first_divergence(a, a, STAGES)


# Figures with intervals.


def test_the_interval_of_paired_differences_is_student_s():
    # b - a = 1, 2, 6: mean 3, variance ((-2)² + (-1)² + 3²) / 2 = 7; t of two degrees 4.303.
    low, high = paired({"x": 0.0, "y": 1.0, "z": 2.0}, {"x": 1.0, "y": 3.0, "z": 8.0, "w": 9.0})
    half = 4.303 * math.sqrt(7) / math.sqrt(3)
    assert (low, high) == pytest.approx((3 - half, 3 + half), **close())
    # b - a = 1, 4: mean 2.5, variance 4.5; t of one degree 12.706, over the root of two: 19.059.
    found = paired({"x": 0.0, "y": 1.0}, {"x": 1.0, "y": 5.0})
    assert found == pytest.approx((2.5 - 19.059, 2.5 + 19.059), **close())
    assert paired({"x": 0.0}, {"x": 1.0}) is None


def close():
    return {"rel": FLOAT64["rtol"], "abs": FLOAT64["atol"]}


def evaluated(folder, values, *, iteration=4, error=0.25):
    """An evaluation of tasks with these values, and the row that sums it up."""
    trajectories = [
        scored(task, parts={"exact_match": value}, total=value) for task, value in values.items()
    ]
    written(folder, trajectories, iteration=iteration, split="dev")
    mean = sum(values.values()) / len(values)
    row = EvaluationRow(
        *("reinforce", iteration, "dev", "sampled", "exact_match", mean),
        tasks=len(values),
        standard_error=error,
        by={},
        rounds_mean=1.0,
    )
    Tables(folder / "tables", folder.name).evaluations([row])
    return folder


def test_the_last_evaluations_are_compared_task_by_task(tmp_path):
    evaluated(tmp_path / "a", {"t0": 1.0, "t1": 1.0, "t2": 1.0}, iteration=2)
    a = evaluated(tmp_path / "a", {"t0": 0.0, "t1": 1.0, "t2": 0.0})
    b = evaluated(tmp_path / "b", {"t0": 1.0, "t1": 2.0, "t2": 4.0}, iteration=9)
    # b - a = 1, 1, 4: mean 2, variance 3, so the half is 4.303 · √3 / √3.
    [row] = metric_differences(a, b, STAGES)
    assert row["interval"] == pytest.approx([2 - 4.303, 2 + 4.303], **close())
    assert (row["a"], row["b"]) == pytest.approx((1 / 3, 7 / 3), **close())
    assert (row["split"], row["mode"], row["metric"]) == ("dev", "sampled", "exact_match")


def test_evaluations_on_other_tasks_are_compared_by_their_standard_errors(tmp_path):
    a = evaluated(tmp_path / "a", {"t0": 0.0, "t1": 1.0}, error=0.3)
    b = evaluated(tmp_path / "b", {"t5": 1.0, "t6": 1.0}, error=0.4)
    # The errors 0.3 and 0.4 add up to 0.5; 1.96 · 0.5 = 0.98.
    [row] = metric_differences(a, b, STAGES)
    assert row["difference"] == pytest.approx(0.5, **close())
    assert row["interval"] == pytest.approx([0.5 - 0.98, 0.5 + 0.98], **close())


def test_an_evaluation_that_one_run_lacks_has_no_difference(tmp_path):
    a, b = evaluated(tmp_path / "a", {"t0": 1.0}), written(tmp_path / "b", [one_turn(7)])
    [row] = metric_differences(a, b, STAGES)
    assert (row["a"], row["b"], row["difference"], row["interval"]) == (1.0, None, None, None)


def test_reward_parts_are_compared_over_the_iterations_that_both_runs_have(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    for iteration, (one, other) in enumerate([(0.0, 1.0), (1.0, 5.0)]):
        # The mean of an iteration is over the trajectories that have the part: null is no zero.
        missing = scored("t1", parts={"x": None}, total=None)
        written(a, [scored(parts={"x": one}, total=2 * one), missing], iteration=iteration)
        written(b, [scored(parts={"x": other}, total=other)], iteration=iteration)
    written(b, [scored(parts={"x": 99.0, "y": 3.0}, total=99.0)], iteration=2)
    rows = {row["part"]: row for row in reward_differences(a, b, STAGES)}
    assert (rows["x"]["a"], rows["x"]["b"], rows["x"]["iterations"]) == (0.5, 3.0, 2)
    assert rows["x"]["interval"] == pytest.approx([2.5 - 19.059, 2.5 + 19.059], **close())
    assert (rows["total"]["a"], rows["total"]["b"]) == (1.0, 3.0)
    assert (rows["y"]["a"], rows["y"]["b"], rows["y"]["difference"]) == (None, 3.0, None)


# Whole runs.


def test_a_run_is_equal_to_itself(runs):
    found = diff(runs / "grpo", runs / "grpo")
    assert (found["recipe"], found["lock"], found["first_divergence"]) == ([], [], None)
    assert {row["difference"] for row in found["metrics"] + found["rewards"]} == {0.0}


def test_two_runs_that_differ_in_a_weight_part_after_the_first_update(runs):
    found = diff(runs / "grpo", runs / "weighted")
    assert found["recipe"] == [
        {"path": f"stages.{stage}.rewards.1.weight", "a": 0.5, "b": 4.0}
        for stage in ("imitate", "reinforce")
    ]
    assert list(found).index("recipe") < list(found).index("first_divergence")
    parted = found["first_divergence"]
    # Iteration 0 was sampled by the same weights; the first update is what the reward changed.
    assert (parted["stage"], parted["iteration"], parted["part"]) == ("reinforce", 1, "action")
    ids = [
        next(
            row["action_ids"][parted["token"]]
            for row in pq.read_table(
                next((runs / name / "tables/turns").glob("reinforce.+*"))
            ).to_pylist()
            if (row["split"], row["iteration"], row["group_id"], row["attempt"], row["turn"])
            == ("train", *(parted[key] for key in ("iteration", "group", "attempt", "turn")))
        )
        for name in ("grpo", "weighted")
    ]
    assert ids == [parted["a"], parted["b"]]
    assert ids[0] != ids[1]
    parts = {row["part"]: row for row in found["rewards"]}
    assert {"spread", "brief", "total"} == set(parts)
    assert parts["total"]["difference"] > 1.0  # mostly the weight itself: 3.5 times about 0.5


def test_runs_of_different_recipes_are_compared_all_the_same(runs):
    found = diff(runs / "grpo", runs / "ppo")
    changed = {row["path"]: (row["a"], row["b"]) for row in found["recipe"]}
    assert changed["stages.reinforce.algorithm.name"] == ("grpo", "ppo")
    assert changed["stages.reinforce.algorithm.std"] == ("sample", None)
    assert found["first_divergence"]["iteration"] == 1


def test_inputs_of_the_lock_that_differ_are_named(copied):
    a = copied("grpo")
    b = shutil.copytree(a, a.parent / "other")
    lock = json.loads((b / "recipe.lock").read_text())
    lock["inputs"] = {**lock["inputs"], "package torch": "1.0", "recipe": "another", "file x": "1"}
    (b / "recipe.lock").write_text(json.dumps(lock))
    found = {row["name"]: (row["a"], row["b"]) for row in diff(a, b)["lock"]}
    known = json.loads((a / "recipe.lock").read_text())["inputs"]["package torch"]
    assert found == {"package torch": (known, "1.0"), "file x": (None, "1")}


def test_a_killed_run_is_compared_as_far_as_it_went(copied, runs):
    killed = copied("grpo")
    for name in ("summary.json", "recipe.lock"):
        (killed / name).unlink()
    shutil.rmtree(killed / "tables")
    found = diff(killed, runs / "grpo")
    assert (found["a"], found["recipe"]) == ({"run": "grpo", "status": "unfinished"}, [])
    assert found["first_divergence"]["iteration"] == 0
    assert found["first_divergence"]["a"] is None
    assert {row["a"] for row in found["metrics"] + found["rewards"]} == {None}


def test_a_recipe_or_summary_that_cannot_be_read_is_named(copied, runs):
    broken = copied("ppo")
    (broken / "summary.json").write_text("{")
    with pytest.raises(AgentRecipesError, match=r"summary\.json: cannot be read"):
        diff(runs / "ppo", broken)
    (broken / "recipe.yaml").write_text("a: [")
    with pytest.raises(RecipeError, match=r"recipe\.yaml"):
        diff(runs / "ppo", broken)
