"""Rules about a stage while it collects: each is quiet, or speaks with its evidence."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.tracking.made import scored

from agentrecipes.health.watching import (
    collapse,
    constant_reward,
    gaming,
    held_out,
    verdicts,
    watched,
)
from agentrecipes.recipe.schema import Collapse, ConstantReward, Gaming, Tripwires


def history(**columns: object):
    """Entries of iterations from 1, a column each; None leaves a figure out."""
    length = len(next(iter(columns.values())))
    names = {name: name.replace("__", "/") for name in columns}
    return [
        {"iteration": n + 1.0, "distinct": 2.0, "null": 0.0}
        | {own: columns[name][n] for name, own in names.items() if columns[name][n] is not None}
        for n in range(length)
    ]


def test_an_entry_holds_what_the_rules_look_at():
    many = [scored(total=1.0), scored(total=0.0), scored(total=None, parts={"judge": None})]
    values = {"rollout/valid_share": 0.9, "rollout/policy_tokens_mean": 3.0, "loss/kl": 0.1}
    values |= {"reward/exact_match": 0.5, "reward/judge_null": 3.0}
    entry = watched(4, many, values)
    assert (entry["iteration"], entry["distinct"], entry["total"]) == (4.0, 2.0, 0.5)
    assert entry["null"] == pytest.approx(1 / 3)
    assert (entry["valid"], entry["length"], entry["kl"]) == (0.9, 3.0, 0.1)
    assert (entry["part/exact_match"], entry["gone/judge"]) == (0.5, 1.0)
    logps = [logp for turn in many[0].trajectory.turns for logp in turn.logp_rollout]
    assert entry["entropy"] == pytest.approx(-math.fsum(logps) / len(logps))
    assert watched(1, [], {}) == {"iteration": 1.0, "distinct": 0.0}


def test_a_reward_that_is_alike_again_and_again_is_told():
    flat = history(distinct=[3.0, 1.0, 1.0, 1.0], total=[0.4, 0.0, 0.0, 0.0])
    verdict = constant_reward(ConstantReward(action="stop"), flat)
    assert (verdict.action, verdict.evidence) == (
        "stop",
        {"iterations": 3.0, "null_share": 0.0, "total": 0.0},
    )
    assert "for 3 iterations all totals are 0" in verdict.message
    assert constant_reward(ConstantReward(), flat[:3]).action == "go"
    lively = [*flat[:3], {**flat[3], "distinct": 2.0}]
    assert constant_reward(ConstantReward(), lively).action == "go"


def test_a_reward_that_nobody_could_compute_is_named():
    gone = history(distinct=[0.0] * 3, null=[1.0] * 3, gone__judge=[1.0] * 3)
    verdict = constant_reward(ConstantReward(), gone)
    assert verdict.action == "pause"
    assert "judge could not be computed for any" in verdict.message
    assert verdict.evidence == {"iterations": 3.0, "null_share": 1.0}


def test_tasks_that_are_solved_are_no_failure():
    solved = history(distinct=[2.0, 1.0, 1.0, 1.0], total=[0.9, 1.0, 1.0, 1.0])
    assert constant_reward(ConstantReward(), solved).action == "go"


MEASURED = [(0, 0.5), (2, 0.46), (4, 0.4)]


def test_a_reward_that_rises_while_the_score_falls_is_told_with_both():
    # between 0 and 2: (0.1 + 0.2) / 2; between 2 and 4: (0.5 + 0.6) / 2
    rising = history(part__judge=[0.1, 0.2, 0.5, 0.6], part__form=[1.0, 1.0, 1.0, 1.0])
    verdict = gaming(Gaming(), rising, MEASURED)
    assert verdict.action == "warn"
    assert verdict.evidence == {
        "score_first": 0.5,
        "score_last": 0.4,
        "rise/judge": pytest.approx(0.4),
    }
    assert "judge by 0.4" in verdict.message
    assert "form" not in verdict.message


@pytest.mark.parametrize(
    "measured",
    [MEASURED[:2], [(0, 0.5), (2, 0.51), (4, 0.4)], [(0, 0.5), (2, 0.495), (4, 0.49)]],
)
def test_a_score_that_does_not_fall_for_long_is_no_gaming(measured):
    rising = history(part__judge=[0.1, 0.2, 0.5, 0.6])
    assert gaming(Gaming(), rising, measured).action == "go"


def test_a_reward_that_falls_with_the_score_is_no_gaming():
    falling = history(part__judge=[0.6, 0.5, 0.2, 0.1])
    assert gaming(Gaming(), falling, MEASURED).action == "go"


def test_of_two_evaluations_the_halves_between_them_are_compared():
    rising = history(part__judge=[0.1, 0.2, 0.5, 0.6])
    verdict = gaming(Gaming(evaluations=2), rising, [(0, 0.5), (4, 0.4)])
    assert verdict.evidence["rise/judge"] == pytest.approx(0.4)


@pytest.mark.parametrize(
    ("rule", "columns", "name", "limit"),
    [
        # means of two: 0.9 0.9 ... and at last 0.4, below half of 0.9
        ({}, {"valid": [0.9, 0.9, 0.9, 0.4, 0.4]}, "valid", 0.45),
        ({}, {"total": [0.2, 0.6, 0.6, 0.2, 0.2]}, "total", 0.3),
        ({}, {"entropy": [2.0, 2.0, 1.0, 0.1, 0.06]}, "entropy", 0.1),
        ({"kl": 0.5}, {"kl": [0.1, 0.1, 0.6, 0.7, 0.8]}, "kl", 0.5),
        ({"length": 4.0}, {"length": [10.0, 10.0, 50.0, 50.0, 50.0]}, "length", 40.0),
        ({"length": 4.0}, {"length": [10.0, 10.0, 5.0, 2.0, 2.0]}, "length", 2.5),
    ],
)
def test_what_is_lost_is_told_with_its_limit(rule, columns, name, limit):
    verdict = collapse(Collapse(window=2, **rule), history(**columns))
    assert verdict.action == "pause"
    assert list(verdict.evidence) == [name, f"{name}_limit"]
    assert verdict.evidence[f"{name}_limit"] == pytest.approx(limit)
    assert name in verdict.message
    quiet = {key: values[:2] for key, values in columns.items()}
    assert collapse(Collapse(window=2, **rule), history(**quiet)).action == "go"


def test_a_limit_that_is_null_is_off():
    lost = history(valid=[0.9, 0.9, 0.9, 0.1, 0.1], total=[-1.0, -1.0, -2.0, -3.0, -3.0])
    assert collapse(Collapse(window=2, valid=None), lost).action == "go"


def test_the_held_out_score_is_the_sampled_policy_s_by_the_first_metric():
    row = {"stage": "s", "iteration": 0, "mode": "sampled", "metric": "em", "value": 0.5}
    rows = [
        row,
        {**row, "metric": "f1", "value": 0.9},
        {**row, "mode": "greedy", "value": 0.8},
        {**row, "stage": "other", "value": 0.1},
        {**row, "iteration": 10, "value": None},
        {**row, "iteration": 20, "value": 0.4},
    ]
    assert held_out(rows, "s") == [(0, 0.5), (20, 0.4)]
    assert held_out([{**row, "mode": "greedy"}], "s") == [(0, 0.5)]


def test_only_rules_that_are_written_are_asked():
    flat = history(distinct=[1.0] * 3, total=[0.0] * 3)
    assert list(verdicts(Tripwires(), flat, [])) == []
    rules = replace_rules(constant_reward=ConstantReward())
    assert [verdict.action for verdict in verdicts(rules, flat, [])] == ["pause"]


def replace_rules(**rules: object):
    return Tripwires(**rules)


def test_a_reward_part_that_is_missing_from_some_trajectories_is_not_gone():
    many = [scored(), replace(scored(), parts={"judge": None})]
    assert "gone/judge" not in watched(1, many, {"reward/judge_null": 1.0})
