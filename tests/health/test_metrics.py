from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tolerances import FLOAT64
from tests.tracking.made import scored, turn

from agentrecipes.health.metrics import (
    evaluation_rows,
    flat_metrics,
    pass_at,
    rollout_metrics,
    standard_error,
)
from agentrecipes.records import Place, Stop

PLACE = Place("reinforce", 10, "dev", "sampled")


def test_rollout_figures_of_three_trajectories_equal_the_hand_computed_ones():
    # A: 2 turns (one search), 3 action and 1 observation tokens, answered, total 1.
    # B: 3 turns that each search, 3 action and 3 observation tokens, no answer, total 0, A's group.
    # C: 1 invalid turn, 2 action tokens, no answer, total null, group of its own.
    searching = (turn((1,), (2,), (3,)),) * 3
    invalid = (turn((1,), (2, 2), valid=False),)
    figures = rollout_metrics(
        [
            scored("x", 0),
            scored("x", 1, total=0.0, turns=searching, stop=Stop.TURNS),
            scored("y", 0, total=None, turns=invalid, stop=Stop.INVALID),
        ]
    )
    expected = {
        "rollout/turns_mean": 6 / 3,
        "rollout/policy_tokens_mean": 8 / 3,
        "rollout/answered_share": 1 / 3,
        "rollout/calls_mean": 4 / 3,
        "rollout/searches_mean": 4 / 3,
        "rollout/valid_share": 5 / 6,
        "rollout/observation_share": 4 / 12,
        "rollout/degenerate_groups_share": 0.0,
        "reward/exact_match": 1 / 2,
        "reward/exact_match_null": 1.0,
        "reward/total": 1 / 2,
        "reward/total_null": 1.0,
        "reward/total_not_finite": 0.0,
        **{f"rollout/stop_{stop}": 0.0 for stop in Stop},
        "rollout/stop_answered": 1 / 3,
        "rollout/stop_turns": 1 / 3,
        "rollout/stop_invalid": 1 / 3,
    }
    assert figures == pytest.approx(expected, rel=FLOAT64["rtol"], abs=FLOAT64["atol"])


def test_no_trajectories_have_no_figures():
    assert rollout_metrics([]) == {}


def test_a_part_that_is_null_everywhere_has_a_count_and_no_mean():
    figures = rollout_metrics([scored(total=None, parts={"judged": None})])
    assert "reward/judged" not in figures
    assert figures["reward/judged_null"] == 1.0


def test_a_total_that_is_no_number_is_counted_and_in_no_mean():
    every = [scored(str(n), total=total) for n, total in enumerate((math.inf, 3.0, math.nan, None))]
    figures = rollout_metrics(every)
    assert figures["reward/total"] == 3.0
    assert (figures["reward/total_not_finite"], figures["reward/total_null"]) == (2.0, 1.0)


def test_a_part_that_some_trajectories_lack_counts_as_null_there():
    figures = rollout_metrics([scored("x", parts={"a": 0.25}), scored("y", parts={})])
    assert (figures["reward/a"], figures["reward/a_null"]) == (0.25, 1.0)


def test_a_group_is_degenerate_without_two_different_totals():
    groups = {"same": (1.0, 1.0), "differ": (1.0, 0.0), "null": (None, 1.0), "alone": (1.0,)}
    every = [
        scored(name, attempt, total=total)
        for name, totals in groups.items()
        for attempt, total in enumerate(totals)
    ]
    # "alone" is no group; of the other three, "same" and "null" teach nothing.
    assert rollout_metrics(every)["rollout/degenerate_groups_share"] == 2 / 3
    assert "rollout/degenerate_groups_share" not in rollout_metrics(every[-1:])


def test_a_trajectory_without_turns_has_no_valid_share():
    figures = rollout_metrics([scored(turns=(), stop=Stop.VOID)])
    assert "rollout/valid_share" not in figures
    assert "rollout/observation_share" not in figures
    assert figures["rollout/stop_void"] == 1.0


def test_other_tools_are_calls_but_not_searches():
    figures = rollout_metrics([scored(turns=(turn((1,), (2,), calls=()),))])
    assert (figures["rollout/calls_mean"], figures["rollout/searches_mean"]) == (0.0, 0.0)


def test_an_evaluation_is_broken_down_by_kind_with_its_standard_error():
    # Values 1, 1, 0, 0.5: mean 0.625; squared deviations .140625 * 2 + .390625 + .015625 = .6875;
    # over n - 1 = 3 that is .2291667, over n = 4 again .0572917, its root .2393568.
    values = [("a", 1.0, "chain-1"), ("b", 1.0, "chain-1"), ("c", 0.0, "chain-2"), ("d", 0.5, "")]
    [row] = evaluation_rows(
        [scored(task, total=value, kind=kind) for task, value, kind in values],
        ["exact_match"],
        PLACE,
    )
    assert (row.stage, row.iteration, row.split, row.mode) == ("reinforce", 10, "dev", "sampled")
    assert (row.metric, row.value, row.tasks) == ("exact_match", 0.625, 4)
    assert row.standard_error == pytest.approx(math.sqrt(0.6875 / 12), **rel_abs())
    assert row.by == {"chain-1": 1.0, "chain-2": 0.0}
    assert row.rounds_mean == 1.0


def rel_abs():
    return {"rel": FLOAT64["rtol"], "abs": FLOAT64["atol"]}


def test_a_null_lowers_the_number_of_tasks_and_is_not_zero():
    rows = evaluation_rows([scored("a"), scored("b", total=None)], ["exact_match", "f1"], PLACE)
    assert [(row.metric, row.value, row.tasks) for row in rows] == [
        ("exact_match", 1.0, 1),
        ("f1", None, 0),
    ]
    assert rows[0].standard_error is None
    assert flat_metrics(rows) == {"eval/dev/sampled/exact_match": 1.0}


def test_several_attempts_count_as_one_task_and_give_pass_at_k():
    # Task a solved in 1 of 3 attempts, b in none: mean (1/3 + 0) / 2.
    # pass@2 of a: 1 - C(2,2)/C(3,2) = 2/3; pass@3 of a: 1.
    every = [scored("a", n, total=float(n == 0)) for n in range(3)]
    every += [scored("b", n, total=0.0) for n in range(3)]
    rows = evaluation_rows(every, ["exact_match"], PLACE)
    assert [row.metric for row in rows] == [
        "exact_match",
        "exact_match/pass@2",
        "exact_match/pass@3",
    ]
    assert [row.value for row in rows] == pytest.approx([1 / 6, 1 / 3, 1 / 2], **rel_abs())
    assert [row.tasks for row in rows] == [2, 2, 2]


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8), st.data())
def test_pass_at_k_is_the_share_of_all_choices_of_k_that_hold_a_solved_one(values, data):
    from itertools import combinations

    k = data.draw(st.integers(1, len(values)))
    choices = [max(chosen) for chosen in combinations(values, k)]
    assert pass_at(k, values) == pytest.approx(sum(choices) / len(choices), **rel_abs())


def test_the_standard_error_of_one_value_is_unknown():
    assert standard_error([0.5]) is None
    assert standard_error([0.5, 0.5]) == 0.0
