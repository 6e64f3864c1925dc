"""Rewards for the use of tools: what it costs, what it earns, and whether it was the right one."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rewards.views import played
from tests.tolerances import FLOAT64

from agentrecipes.records import Call
from agentrecipes.rewards.matching import best_total
from agentrecipes.rewards.tool_bonus import ToolBonus
from agentrecipes.rewards.tool_cost import ToolCost
from agentrecipes.rewards.tool_overlap import ToolOverlap, Wanted, wanted_calls
from agentrecipes.schedules import value_at

NUMBERS = st.lists(st.integers(0, 9), min_size=12, max_size=12)
SEARCH_OR_ADD = [{"search": {"query": ["Rome", "rome"]}}, {"add": {"a": [1], "b": [2]}}]


def close(value):
    return pytest.approx(value, rel=FLOAT64["rtol"], abs=FLOAT64["atol"])


def calling(*turns: object):
    return played(*(("x", "", calls) for calls in turns))


def overlap(truth, *calls: object):
    return ToolOverlap().score(played(("x", "", calls), ground_truth=truth))


def test_calls_beyond_the_free_ones_cost_a_share():
    view = calling(["f", "g"], [], ["f", "f", "g"])
    assert ToolCost(most=10, free=2).score(view) == close(-0.3)
    assert ToolCost(most=4, free=0, tools=("g",)).score(view) == -0.5
    assert ToolCost(most=2).score(view) == -1.0
    assert ToolCost(free=5).score(view) == 0.0


def test_a_bonus_counts_turns_with_calls_up_to_one():
    view = calling(["f", "g"], [], ["f", "f", "g"])
    assert ToolBonus().score(view) == 0.2
    assert ToolBonus(count="calls").score(view) == 0.5
    assert ToolBonus(count="calls", tools=("g",)).score(view) == 0.2
    assert ToolBonus(each=0.7).score(view) == 1.0


def test_spear_s_bonus_fades_with_a_schedule_on_its_weight():
    # Five calls earn 0.5; half way, 0.5 · (1 + cos(π/2)) = 0.5 of it is left: 0.25.
    weight = value_at({"schedule": "cosine", "from": 1.0, "to": 0.0, "over": 200}, 100)
    assert weight * ToolBonus().score(calling(*[["f"]] * 5)) == close(0.25)


@pytest.mark.parametrize(
    ("calls", "gained"),
    # best = 1 + 2 calls + 3 parameters = 6
    [
        ([("search", {"query": "rome"}), ("add", {"a": 1, "b": 2})], 6),
        # names 1/2; search: names of parameters 1, value 1
        ([("search", {"query": "Rome"})], 1 / 2 + 2),
        # names 2/3; search: 1 + 0; add: {a, c} of {a, b, c} = 1/3, one right value
        ([("search", {"query": "x"}), ("add", {"a": 1, "c": 2}), "f"], 2 / 3 + 1 + 1 / 3 + 1),
        (["f"], 0),
        ([], 0),
    ],
)
def test_tool_overlap_equals_the_hand_computed_value(calls, gained):
    assert overlap(SEARCH_OR_ADD, *calls) == close(6 * gained / 6 - 3)


def test_calls_are_paired_so_that_they_agree_most():
    # Greedily the first wanted call takes the first one (both values right are left for nobody).
    truth = [{"f": {"a": [1], "b": [2, 3]}}, {"f": {"a": [1], "b": [3]}}]
    calls = [("f", {"a": 1, "b": 3}), ("f", {"a": 1, "b": 2})]
    assert overlap(truth, *calls) == close(3.0)
    assert overlap(truth, *reversed(calls)) == close(3.0)


def test_wanting_nothing_is_right_only_without_a_call():
    assert overlap([]) == 3.0
    assert overlap([], "f") == -3.0


def test_an_optional_parameter_counts_only_where_its_value_is_wrong():
    truth = [{"f": {"a": [1], "unit": ["km", ""]}}]  # best = 1 + 1 + 1
    assert overlap(truth, ("f", {"a": 1})) == 3.0
    assert overlap(truth, ("f", {"a": 1, "unit": "km"})) == 3.0
    # parameters: {a} of {a, unit} = 1/2; 1 + 1/2 + 1 of 3
    assert overlap(truth, ("f", {"a": 1, "unit": "mile"})) == close(6 * 2.5 / 3 - 3)


def test_true_is_not_one_and_a_plain_call_is_read_too():
    assert not Wanted("f", {"a": (1,)}).accepts("a", True)
    plain = wanted_calls([{"name": "f", "arguments": {"a": 1}}])
    assert plain == [Wanted("f", {"a": (1,)})]
    assert plain[0].agreement(Call("f", {"a": 1})) == 2.0


@pytest.mark.parametrize(
    "truth", [None, "f(1)", ["f(1)"], [{"f": 1}], [{"f": {"a": 1}}], [{"f": {}, "g": {}}], [{}]]
)
def test_what_was_wanted_in_another_form_is_null(truth):
    assert overlap(truth, "f") is None


@given(NUMBERS, st.sampled_from([1, 2, 3, 4, 6, 12]))
def test_the_best_pairing_equals_the_best_of_all_pairings(numbers, width):
    table = [numbers[start : start + width] for start in range(0, 12, width)]
    wide = table if len(table) <= width else list(zip(*table, strict=True))
    ways = permutations(range(len(wide[0])), len(wide))
    best = max(sum(row[c] for row, c in zip(wide, way, strict=True)) for way in ways)
    assert best_total(table) == best


def test_nothing_to_pair_is_worth_nothing():
    assert best_total([]) == best_total([[], []]) == 0.0
