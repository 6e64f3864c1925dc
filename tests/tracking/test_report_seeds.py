"""Runs of one recipe become one curve with an interval that says how sure it is."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from agentrecipes.tracking.report.reading import RunData
from agentrecipes.tracking.report.seeds import (
    evaluation_curve,
    groups,
    mean_by,
    metric_curve,
    mode_rank,
    point,
    stages,
    thinned,
    unit,
)
from tolerances import FLOAT64

CLOSE = {"rel": FLOAT64["rtol"], "abs": FLOAT64["atol"]}


def run(name, *, recipe_hash="aa11bb22", seed=0, **more: Any):
    """A run of plain values."""
    summary = {"recipe_hash": recipe_hash, "seed": seed, **more.pop("summary", {})}
    return RunData(
        folder=Path(name),
        name=name,
        summary=summary,
        recipe=more.get("recipe", {"name": "demo"}),
        origin={},
        evaluations=more.get("evaluations", []),
        metrics=more.get("metrics", {}),
    )


def row(value, iteration=0, *, error=None, stage="reinforce", mode="sampled"):
    return {
        **{"stage": stage, "iteration": iteration, "split": "dev", "mode": mode},
        **{"metric": "exact_match", "value": value, "standard_error": error, "by": {}},
    }


def test_one_seed_has_the_interval_of_its_tasks():
    found = point("s", 3, [0.5], errors=[0.1])
    # 1.96 standard errors on either side.
    assert (found.low, found.high) == pytest.approx((0.304, 0.696), **CLOSE)
    assert (found.mean, found.kind) == (0.5, "tasks")


def test_one_seed_without_an_error_has_no_interval():
    found = point("s", 3, [0.5], errors=[None])
    assert (found.low, found.high, found.kind) == (0.5, 0.5, "none")


def test_two_seeds_have_the_range_between_them():
    found = point("s", 0, [0.2, 0.6])
    assert (found.low, found.high) == pytest.approx((0.2, 0.6), **CLOSE)
    assert found.kind == "range"


def test_three_seeds_have_student_s_interval():
    # Mean 0.5; deviations -0.3, 0.1, 0.2: variance 0.14 / 2 = 0.07, error √(0.07 / 3);
    # t at 97.5 % with 2 degrees of freedom is 4.303.
    found = point("s", 0, [0.2, 0.6, 0.7])
    half = 4.303 * math.sqrt(0.07 / 3)
    assert (found.low, found.high) == pytest.approx((0.5 - half, 0.5 + half), **CLOSE)
    assert found.kind == "t"


def test_many_seeds_have_the_normal_interval():
    # 50 zeros and 50 ones: variance 25 / 99, error √(25 / 99 / 100).
    found = point("s", 0, [0.0, 1.0] * 50)
    half = 1.960 * math.sqrt(25 / 99 / 100)
    assert found.high - found.mean == pytest.approx(half, **CLOSE)


def test_runs_of_one_recipe_are_a_group_and_equal_names_are_told_apart_by_their_hash():
    runs = [run("a", seed=1), run("b", recipe_hash="cc33dd44"), run("c", seed=2)]
    one, other = groups(runs)
    assert [each.name for each in one.runs] == ["a", "c"]
    assert (one.label, other.label) == ("demo aa11bb", "demo cc33dd")
    assert groups(runs[:1])[0].label == "demo"


def test_a_profile_is_part_of_the_name_and_a_run_without_anything_has_its_folder_s():
    [group] = groups([run("a", summary={"profile": "smol"})])
    assert group.label == "demo (smol)"
    [group] = groups([run("a", recipe={}, recipe_hash=None)])
    assert group.label == "a"


def test_an_evaluation_curve_joins_the_seeds_of_each_place():
    runs = [run("a", evaluations=[row(0.2), row(0.4, 10)]), run("b", evaluations=[row(0.6)])]
    [group] = groups(runs)
    first, second = evaluation_curve(group, "dev", "sampled", metric="exact_match")
    assert (first.values, first.kind) == ((0.2, 0.6), "range")
    assert (second.iteration, second.values) == (10, (0.4,))
    assert evaluation_curve(group, "dev", "greedy", metric="exact_match") == []


def test_a_long_curve_is_thinned_to_means_of_neighbours():
    assert thinned([(0, 1.0), (1, 3.0), (2, 5.0)], 2) == [(1, 2.0), (2, 5.0)]
    assert thinned([(0, 1.0), (1, 3.0)], 2) == [(0, 1.0), (1, 3.0)]
    assert thinned([], 2) == []


def test_a_metric_s_curve_is_the_mean_of_the_seeds_that_have_it():
    key = ("reinforce", "loss/total")
    runs = [run("a", metrics={key: [(0, 1.0), (1, 2.0)]}), run("b", metrics={key: [(0, 3.0)]})]
    [group] = groups(runs)
    assert [(p.iteration, p.mean) for p in metric_curve(group, *key, most=9)] == [
        (0, 2.0),
        (1, 2.0),
    ]


def test_a_stage_is_as_long_as_it_became_and_as_planned_before_it_ends():
    recipe = {"name": "demo", "stages.imitate.steps": "1700", "stages.reinforce.iterations": "100"}
    ended = [{"name": "imitate", "iterations": 0, "steps": 2000}]
    going = run("a", recipe=recipe, summary={"stages": ended}, evaluations=[row(0.5, 30)])
    assert stages([going]) == {"imitate": 2000, "reinforce": 100}
    assert (unit([going], "imitate"), unit([going], "reinforce")) == ("step", "iteration")
    assert stages([run("b", recipe={}, evaluations=[row(0.5, 30)])]) == {"reinforce": 30}


def test_sampled_comes_before_greedy_and_both_before_what_is_new():
    assert sorted(["other", "greedy", "sampled"], key=mode_rank) == ["sampled", "greedy", "other"]


def test_a_mean_by_key_is_over_the_rows_that_have_the_key():
    assert mean_by([{"a": 1.0, "b": 2.0}, {"a": 3.0}]) == {"a": 2.0, "b": 2.0}
