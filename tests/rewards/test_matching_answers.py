"""Rewards that find a gold answer inside an answer, choose an option, or ask for any answer."""

from __future__ import annotations

import pytest
from tests.rewards.views import asked

from agentrecipes.rewards.answer_present import AnswerPresent
from agentrecipes.rewards.multiple_choice import MultipleChoice
from agentrecipes.rewards.substring_match import SubstringMatch

CITIES = {"A": "Paris", "B": "Rome", "C": "The Hague", "D": "A"}


@pytest.mark.parametrize(
    ("answer", "gold", "expected", "as_words"),
    [
        ("It is Rome, in Italy.", "rome", 1.0, 1.0),
        ("I know it", "no", 1.0, 0.0),  # the published rule finds "no" in "know"
        ("Eiffel-Tower", "eiffeltower!", 1.0, 1.0),
        ("Rome", "Rome in Italy", 0.0, 0.0),  # the gold answer in the answer, not the other way
        ("", "Rome", 0.0, 0.0),
        (None, "Rome", 0.0, 0.0),
    ],
)
def test_a_substring_is_looked_for_after_normalisation(answer, gold, expected, as_words):
    view = asked("Madrid", gold, answer=answer)
    assert SubstringMatch().score(view) == expected
    assert SubstringMatch(whole_words=True).score(view) == as_words


def test_a_gold_answer_of_which_nothing_is_left_is_not_in_every_text():
    # "the" and "," normalise to nothing, which is a substring of everything.
    assert SubstringMatch().score(asked("the", ",", answer="Paris")) is None
    assert SubstringMatch().score(asked("the", "Rome", answer="Paris")) == 0.0
    assert SubstringMatch(ignore_articles=False).score(asked("The", answer="the one")) == 1.0


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("B", 1.0),
        ("b", 1.0),
        (" (B). ", 1.0),
        ("The answer is B.", 1.0),
        ("Answer: [b]", 1.0),
        ("B) Rome", 1.0),
        ("B. because it is older", 1.0),
        ("the  ROME!", 1.0),
        ("C", 0.0),
        ("Paris", 0.0),
        ("B) Paris", 0.0),  # letter and text disagree: nothing is chosen
        ("Be it Rome", 0.0),
        ("E", 0.0),
        ("", 0.0),
        (None, 0.0),
    ],
)
def test_an_option_is_chosen_by_its_letter_or_its_text(answer, expected):
    assert MultipleChoice().score(asked("B", "Rome", answer=answer, options=CITIES)) == expected


def test_a_letter_alone_is_a_letter_and_otherwise_texts_come_first():
    germs = {"A": "C. difficile", "B": "E. coli", "C": "B", "D": "the"}
    right = {"A": ("C. difficile", "a"), "C": ("C", "C. B"), "B": ("b", "E. coli")}
    for letter, answers in right.items():
        for answer in answers:
            view = asked(letter, answer=answer, options=germs)
            assert MultipleChoice().score(view) == 1.0, answer
    # Nothing is left of "an", nor of option D: that makes them no match.
    assert MultipleChoice().score(asked("D", answer="an", options=germs)) == 0.0


@pytest.mark.parametrize(
    ("golds", "data"),
    [
        (("B",), {}),
        (("B",), {"options": ["Paris", "Rome"]}),
        ((), {"options": CITIES}),
        (("Oslo",), {"options": CITIES}),
    ],
)
def test_without_options_or_a_right_one_among_them_the_choice_is_null(golds, data):
    assert MultipleChoice().score(asked(*golds, answer="B", **data)) is None


def test_an_answer_is_present_unless_it_is_blank():
    given = [AnswerPresent().score(asked("x", answer=answer)) for answer in ("no", "", " \n", None)]
    assert given == [1.0, 0.0, 0.0, 0.0]
