"""Rewards that compare an answer with gold answers, and the normalisation behind them."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tolerances import FLOAT64

from agentrecipes.components import build
from agentrecipes.numerics.answer_text import normalise
from agentrecipes.records import Task
from agentrecipes.rewards.exact_match import ExactMatch
from agentrecipes.rewards.normalisation import matches, overlap
from agentrecipes.rewards.token_f1 import TokenF1
from agentrecipes.testing.suites import RewardSuite, answered

TEXTS = st.text(string.ascii_letters + string.punctuation + " éİßa\n", max_size=20)


class TestExactMatch(RewardSuite):
    @pytest.fixture
    def reward(self):
        return ExactMatch()


class TestTokenF1(RewardSuite):
    @pytest.fixture
    def reward(self):
        return TokenF1()


def view(answer, *golds: str):
    return answered(Task("t", "dev", "?", golds), answer)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("The Eiffel-Tower!", "eiffeltower", 1.0),  # punctuation is deleted, not turned into blanks
        ("Eiffel Tower", "Eiffel-Tower", 0.0),
        ("An apple", "apple", 1.0),
        ("  the\nBeatles ", "Beatles", 1.0),
        ("theatre", "atre", 0.0),  # articles are whole words
        ("Paris", "Rome", 0.0),
        ("", "Rome", 0.0),
        (None, "Rome", 0.0),
    ],
)
def test_exact_match_is_squad_s(answer, gold, expected):
    assert ExactMatch().score(view(answer, gold)) == expected


def test_any_gold_answer_counts():
    assert ExactMatch().score(view("B and A", "A and B", "B and A")) == 1.0
    assert TokenF1().score(view("New York", "Paris", "New York City")) == pytest.approx(0.8)


def test_articles_can_be_kept():
    kept = build("reward", {"name": "exact_match", "ignore_articles": False})
    assert kept.score(view("The Who", "Who")) == 0.0
    assert kept.score(view("the who!", "The Who")) == 1.0
    assert TokenF1(ignore_articles=False).score(view("the who", "who")) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("answer", "gold", "expected"),
    [
        ("big red fox", "red fox", 0.8),  # precision 2/3, recall 1
        ("fox fox fox", "fox", 0.5),  # a word counts as often as both have it: 1/3, 1
        ("red", "blue", 0.0),
        ("yes", "yes it is", 0.0),  # a verdict is right or wrong, never half right
        ("no way", "no", 0.0),
        ("noanswer", "noanswer given", 0.0),
        ("Yes.", "yes", 1.0),
        ("no", "yes", 0.0),
        (None, "yes", 0.0),
        ("the", "an", 0.0),  # both are empty after normalisation: nothing is shared
    ],
)
def test_token_f1_equals_the_hand_computed_value(answer, gold, expected):
    score = TokenF1().score(view(answer, gold))
    assert score == pytest.approx(expected, rel=FLOAT64["rtol"], abs=FLOAT64["atol"])


@given(TEXTS, TEXTS)
def test_normalising_twice_changes_nothing_and_f1_is_symmetric(one, two):
    assert normalise(normalise(one)) == normalise(one)
    assert overlap(one, two) == pytest.approx(overlap(two, one))
    assert matches(one, [one])
    if normalise(one):
        assert overlap(one, one) == pytest.approx(1.0)


@given(TEXTS)
def test_normalised_text_has_no_punctuation_and_no_double_blank(text):
    normal = normalise(text)
    assert not set(normal) & set(string.punctuation)
    assert normal == " ".join(normal.split())
    assert not {"a", "an", "the"} & set(normal.split())
