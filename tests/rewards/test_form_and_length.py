"""Rewards for readable turns, for length, and against saying things again."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from tests.rewards.views import played
from tests.tolerances import FLOAT64

from agentrecipes.rewards.format_valid import FormatValid
from agentrecipes.rewards.length import Length
from agentrecipes.rewards.protocol import most_tokens
from agentrecipes.rewards.repetition import Repetition

NOTHING = ("fine", "", ())
BROKEN = ("broken", "", ())


def close(value):
    return pytest.approx(value, rel=FLOAT64["rtol"], abs=FLOAT64["atol"])


def test_valid_turns_are_a_share_or_all_of_them():
    views = [played(NOTHING, BROKEN, NOTHING, NOTHING), played(NOTHING, NOTHING), played()]
    assert [FormatValid().score(view) for view in views] == [0.75, 1.0, 0.0]
    assert [FormatValid(turns="all").score(view) for view in views] == [0.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("tokens", "expected"),
    # 20480 - 4096 = 16384, where it begins; 18432 is half way down.
    [(0, 0.0), (16384, 0.0), (17408, -0.25), (18432, -0.5), (20480, -1.0), (30000, -1.0)],
)
def test_dapo_s_overlong_punishment_has_the_published_values(tokens, expected):
    view = played(NOTHING, NOTHING, tokens=(tokens // 4, tokens - tokens // 4))
    assert Length(max=20480, buffer=4096).score(view) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"),
    # A fifth of 1000 is 200: it begins at 800; 850 is a quarter of the way down.
    [(800, 0.0), (850, -0.25), (1000, -1.0), (1200, -1.0)],
)
def test_without_bounds_length_falls_over_the_last_fifth_of_what_can_be_written(tokens, expected):
    view = replace(played(NOTHING, tokens=(tokens,)), most_tokens=1000)
    assert Length().score(view) == expected


def test_without_a_limit_length_is_null():
    assert Length().score(played(NOTHING, tokens=(5,))) is None
    assert Length(max=4).score(played(NOTHING, tokens=(5,))) == -1.0


def test_what_the_policy_can_write_is_what_its_turns_hold_but_not_above_the_trajectory():
    five_turns, endless = SimpleNamespace(max_turns=5), SimpleNamespace()
    for tokens, environment, expected in (
        (2048, five_turns, 320),
        (300, five_turns, 300),
        (2048, endless, 2048),
    ):
        rollout = SimpleNamespace(tokens=tokens, tokens_per_turn=64)
        stage = SimpleNamespace(rollout=rollout, environment=environment)
        assert most_tokens(stage) == expected


def test_without_counted_tokens_length_is_null_unless_it_counts_text():
    view = played(("one two  three", "long observation", ()), ("four", "", ()))
    assert Length().score(view) is None
    assert Length(count="words", max=6, buffer=4).score(view) == -0.5  # 4 words, 2 beyond 6 - 4
    # 14 + 4 characters, 2 beyond 20 - 4
    assert Length(count="characters", max=20, buffer=4).score(view) == -0.5


def test_repeated_runs_of_words_cost_their_share():
    # Runs of 2: "a b", "b a", "a b" in turn 1, "a b", "b c" in turn 2: 3 distinct of 5.
    view = played(("A b a b", "", ()), ("a b c", "", ()))
    assert Repetition(size=2).score(view) == close(3 / 5 - 1)
    assert Repetition(size=1).score(view) == close(3 / 7 - 1)
    assert Repetition(size=5).score(view) == 0.0
    assert Repetition().score(played()) == 0.0


def test_repeated_calls_are_those_with_the_same_arguments_in_any_order():
    one, again = ("f", {"a": 1, "b": 2}), ("f", {"b": 2, "a": 1})
    view = played(("x", "", [one, ("f", {"a": 1})]), ("x", "", [again, ("g", {"a": 1, "b": 2})]))
    assert Repetition(of="calls").score(view) == -0.25  # 3 distinct of 4
