"""Rewards that hold rewards: by hand, with ranges that hold, and nulls that come through."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.rewards.views import played
from tests.tolerances import FLOAT64

from agentrecipes.components import Component, build
from agentrecipes.recipe.schema import RewardEntry
from agentrecipes.rewards.algebra import WeightedReward, computed
from agentrecipes.rewards.clip import Clip
from agentrecipes.rewards.gate import Gate
from agentrecipes.rewards.maximum import Maximum
from agentrecipes.rewards.minimum import Minimum
from agentrecipes.rewards.mix import Mix
from agentrecipes.rewards.product import Product
from agentrecipes.rollout.score import score_view


class Says(Component):
    """A reward that gives what it was made with."""

    kind: ClassVar[str] = "reward"
    part_name: ClassVar[str] = "says"
    value: object = None
    low: float = -1.0
    high: float = 1.0
    reads: ClassVar[frozenset[str]] = frozenset()

    @property
    def range(self):
        return self.low, self.high

    @property
    def gives(self):
        return "turn" if isinstance(self.value, list) else "trajectory"

    def score(self, view):
        return self.value


VIEW = played(("one", "", ()), ("two", "", ()))
EMPTY = played()


def says(value, low=-1.0, high=1.0):
    return Says(value=value, low=low, high=high)


def close(value):
    return pytest.approx(value, rel=FLOAT64["rtol"], abs=FLOAT64["atol"])


def gate(when, then, otherwise=-1.0, at_least=1.0):
    return Gate(when=when, at_least=at_least, then=then, else_=otherwise)


def heavy(value, weight):
    return WeightedReward(part=says(value), weight=weight)


@pytest.mark.parametrize(
    ("when", "expected"),
    [(1.0, 0.5 * 0.8 - 2.0 * 0.25), (0.99, -0.3), ([0.75, 0.25], -0.1), ([0.5, 0.25], -0.3)],
)
def test_a_gate_gives_the_weighted_sum_or_what_stands_otherwise(when, expected):
    found = gate(says(when), (heavy(0.8, 0.5), heavy(0.25, -2.0)), otherwise=-0.3)
    assert found.score(VIEW) == close(expected)


def test_the_other_side_of_a_gate_can_be_parts_too():
    either = gate(says(0.0), (heavy(1.0, 1.0),), otherwise=(heavy(0.5, 0.4), heavy(0.1, 1.0)))
    assert either.score(VIEW) == close(0.3)


def test_a_gate_keeps_turns_apart_with_single_numbers_on_the_last():
    opened = gate(says(1.0), (heavy([0.5, -0.25], 2.0), heavy(0.7, 1.0)))
    assert opened.score(VIEW) == [1.0, close(0.2)]
    assert opened.gives == "turn"
    # of a turn: 2 · [-1, 1], with [-1, 1] more on the last one; or -1
    assert opened.range == (-3.0, 3.0)
    without = gate(says(1.0), (heavy([], 2.0), heavy(0.7, 1.0)))
    assert without.score(EMPTY) == close(0.7)


def test_what_does_not_count_is_not_looked_at_and_what_counts_must_be_there():
    then = (heavy(None, 1.0),)
    assert gate(says(0.0), then).score(VIEW) == -1.0
    assert gate(says(1.0), then).score(VIEW) is None
    assert gate(says(None), (heavy(1.0, 1.0),)).score(VIEW) is None


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (0.5, -0.5, -0.25),
        (0.5, [0.2, -1.0], [0.1, -0.5]),
        ([0.2, -1.0], 0.5, [0.1, -0.5]),
        ([0.2, -1.0], [0.5, 0.25], [0.1, -0.25]),
        (0.0, None, None),  # nothing is known of the other
    ],
)
def test_a_product_multiplies_turn_by_turn(one, other, expected):
    assert Product(of=(says(one), says(other))).score(VIEW) == expected


def test_the_smallest_and_the_greatest_compare_whole_trajectories():
    parts = (says(0.25), says([0.5, -0.75]), says([0.5, 0.125]))
    assert Minimum(of=parts).score(VIEW) == -0.25
    assert Maximum(of=parts).score(VIEW) == 0.625
    assert Minimum(of=(*parts, says(None))).score(VIEW) is None
    assert Maximum(of=(says(0.5, 0, 1), says(0.5, 0.25, 3))).range == (0.25, 3)
    assert Minimum(of=(says(0.5, 0, 1), says(0.5, 0.25, 3))).range == (0, 1)


@pytest.mark.parametrize(("value", "expected"), [(-0.9, -0.5), (0.1, 0.1), ([0.4, 0.5], 0.25)])
def test_a_clipped_reward_lies_between_its_bounds(value, expected):
    clip = Clip(of=says(value), low=-0.5, high=0.25)
    assert clip.score(VIEW) == expected
    assert clip.range == (-0.5, 0.25)
    assert Clip(of=says(None), high=0.0).score(VIEW) is None


def test_a_mix_shares_out_between_two():
    assert Mix(of=says(0.5), rest=says(-1.0), share=0.3).score(VIEW) == close(0.15 - 0.7)
    turns = Mix(of=says([0.5, 1.0]), rest=says(-1.0), share=0.25)
    assert turns.score(VIEW) == [0.125, close(0.25 - 0.75)]
    assert Mix(of=says(0.5), rest=says(None), share=1.0).score(VIEW) is None


def test_deep_dx_s_sum_is_expressible():
    # refer 1, search 1/8 differences of a quarter, answer 1: 0.8 + 0.05 · 0.5 + 0.15 = 0.975
    then = (heavy(1.0, 0.8), heavy(0.5, 0.05), heavy(1.0, 0.15))
    assert gate(says(1.0), then, otherwise=0.0).score(VIEW) == close(0.975)


@pytest.mark.parametrize(
    ("answer", "calls", "action", "expected"),
    [
        ("red fox fox fox", ["search", "python"], "fine", 2 / 3 + 0.1),  # precision 1/2, recall 1
        ("red fox fox fox", ["search"], "fine", 2 / 3),
        ("hen", ["search", "python"], "fine", 0.0),
        ("red fox", ["search", "python"], "broken", -1.0),
    ],
)
def test_arpo_s_reward_is_expressible(answer, calls, action, expected):
    # -1 if ill-formed, else F1, and 0.1 more if F1 > 0 and both tools were used
    both = [{"name": "tool_bonus", "each": 1.0, "tools": [tool]} for tool in ("search", "python")]
    bonus = {"name": "gate", "when": "token_f1", "at_least": 1e-6, "else": 0}
    bonus |= {"then": [{"name": "product", "of": both}], "weight": 0.1}
    arpo = {"name": "gate", "when": "format_valid", "else": -1, "then": ["token_f1", bonus]}
    view = played((action, "", calls), golds=("red fox",), answer=answer)
    assert build("reward", arpo).score(view) == close(expected)


def test_what_leaves_its_range_inside_is_null_and_named_from_the_outside_in():
    wrong = RewardEntry(part=Clip(of=says(7.0), high=0.5), **{"as": "kept"})
    found = score_view(VIEW, [wrong])
    assert (found.parts, found.total) == ({"kept": None}, None)
    assert found.problems == (
        "kept could not be computed: says gave 7.0, outside its range [-1, 1]",
    )
    nested = RewardEntry(part=gate(says(1.0), (WeightedReward(part=Clip(of=says(None), low=0.0)),)))
    masked = score_view(VIEW, [nested.model_copy(update={"missing": "mask"})])
    assert masked.masked
    assert masked.problems == (
        "gate could not be computed: clip could not be computed: says could not be computed",
    )


def test_a_gate_is_written_as_it_is_read():
    written = {"name": "gate", "when": "format_valid", "else": -1, "then": ["exact_match"]}
    built = build("reward", written)
    assert built.dump() == {
        "name": "gate",
        "when": {"name": "format_valid", "turns": "share"},
        "at_least": 1.0,
        "then": [{"name": "exact_match", "ignore_articles": True, "weight": 1.0}],
        "else": -1.0,
    }
    assert build("reward", built.dump()) == built


def test_sums_of_turns_have_no_bounds_but_a_sign():
    assert Maximum(of=(says([0.0], 0, 1), says(0.0, -2, -1))).range == (0.0, math.inf)
    assert Minimum(of=(says([0.0], -1, 0), says(0.0, 1, 2))).range == (-math.inf, 0.0)


SEVENTHS = st.integers(-21, 21).map(lambda n: n / 7)  # fractions that floats round
ENDS = st.tuples(SEVENTHS, SEVENTHS).map(sorted)
PARTS = st.builds(
    lambda ends, shares, listed: says(_between(ends, shares if listed else shares[0]), *ends),
    ENDS,
    st.lists(st.integers(0, 9).map(lambda n: n / 9), min_size=2, max_size=2),
    st.booleans(),
)


def _between(ends: list[float], shares: Any) -> Any:
    if isinstance(shares, list):
        return [_between(ends, share) for share in shares]
    return min(max(ends[0] + shares * (ends[1] - ends[0]), ends[0]), ends[1])


@given(PARTS, PARTS, st.integers(0, 9).map(lambda n: n / 9), SEVENTHS)
def test_every_combination_lies_in_the_range_that_is_derived_for_it(one, other, share, weight):
    weighted = (WeightedReward(part=one, weight=weight), WeightedReward(part=other, weight=share))
    for part in (
        gate(one, weighted, otherwise=share, at_least=weight),
        gate(one, weighted, otherwise=weighted, at_least=weight),
        Product(of=(one, other, one)),
        Minimum(of=(one, other)),
        Maximum(of=(one, other)),
        Clip(of=one, low=min(share, weight), high=max(share, weight)),
        Mix(of=one, rest=other, share=share),
        Product(of=(Mix(of=one, rest=other, share=share), gate(other, weighted))),
    ):
        value, problem = computed(part, VIEW, "it")
        assert value is not None, problem
        assert isinstance(value, list) <= (part.gives == "turn")
