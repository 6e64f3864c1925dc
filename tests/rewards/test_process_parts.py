"""Rewards by how often a task is solved, by turn beside the outcome, by errors and answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rewards.views import asked, played

from agentrecipes.components import build

RATE = {"name": "given", "field": "solved"}
PROGRESS = {"name": "progress", "of": "gold"}


def reward(name, **fields: object):
    return build("reward", {"name": name, **fields})


def test_ends_of_difficulty_move_its_top():
    # low 0.5: 4 (0.5 + s) (1 - s), the top at s = 0.25 is 1.5² = 2.25; s = 0.75 gives 1.25
    part = reward("difficulty", of=RATE, low=0.5)
    assert part.range == (0.0, 2.25)
    values = [part.score(asked("Rome", solved=s)) for s in (0, 0.25, 0.75, 1)]
    assert values == [0.0, 2.25, 1.25, 0.0]


def test_the_range_of_difficulty_holds_ends_below_zero():
    # high 0.5: at s = 1 the curve would be 4 · 1 · -0.5
    part = reward("difficulty", of=RATE, high=0.5)
    assert part.range == (-2.0, 0.25)
    assert part.score(asked("Rome", solved=0.75)) == -0.75


@settings(max_examples=50)
@given(st.floats(0, 1), st.floats(-1, 1), st.floats(0, 2))
def test_difficulty_stays_in_its_range(rate, low, high):
    part = reward("difficulty", of=RATE, low=low, high=high)
    least, most = part.range
    assert least <= part.score(asked("Rome", solved=rate)) <= most


def test_difficulty_of_what_is_not_known_is_null_and_of_what_is_no_rate_a_problem():
    assert reward("difficulty", of=RATE).score(asked("Rome")) is None
    [problem] = reward("difficulty", of={**RATE, "high": 5.0}).rules(None)
    assert (problem.code, problem.path) == ("contradiction", "of")
    assert list(reward("difficulty", of=RATE).rules(None)) == []


def test_turns_of_a_failure_are_never_paid():
    turns = (("look", "Rome", ()), ("look", "x", ()), ("say", "", ()))
    part = reward("renorm", of=PROGRESS, outcome="exact_match")
    assert part.score(played(*turns, answer="Rome")) == [1.0, 0.0, 1.0]
    assert part.score(played(*turns, answer="Paris")) == [0.0, -1.0, 0.0]
    assert part.range == (-1.0, 1.0)


def test_renorm_is_null_where_either_is_and_wants_turns():
    part = reward("renorm", of=PROGRESS, outcome=RATE)
    assert part.score(asked("Rome")) is None
    assert part.score(asked(solved=1)) is None
    assert part.score(played(golds=("Rome",), solved=1)) == []
    [problem] = reward("renorm", of="exact_match", outcome="exact_match").rules(None)
    assert (problem.code, problem.path) == ("wrong_value", "of")


@pytest.mark.parametrize(
    ("seen", "share"), [(["ERROR: x", "fine", ""], 0.5), (["", " "], 0.25), (["fine"], 0.0)]
)
def test_errors_are_shares_of_what_tools_replied(seen, share):
    turns = [("look", text, ("search",)) for text in seen]
    assert reward("tool_errors", without=0.25).score(played(*turns)) == share


def test_what_an_error_looks_like_can_be_said():
    part = reward("tool_errors", mark="Not found")
    assert part.score(played(("look", "not found.", ()), ("look", "error", ()))) == 0.5


@pytest.mark.parametrize(
    ("texts", "value"),
    [
        (["<answer> 1 </answer>"], 0.0),
        (["hm", "<answer> 1 </answer> <answer> 2 </answer>"], 0.5),
        (["<answer> 1 </answer>" * 9], 1.0),  # eight too many in one turn
        (["<answer> 1"], 1.0),
        (["hm"], 1.0),
        ([], 1.0),
    ],
)
def test_answers_beyond_the_first_count_by_turn(texts, value):
    assert reward("extra_answers").score(played(*((text, "", ()) for text in texts))) == value
