"""Rewards of countdown, and of mathematics compared by sympy."""

from __future__ import annotations

import pytest

from agentrecipes.components import build
from agentrecipes.records import Task
from agentrecipes.testing.suites import RewardSuite, answered

NUMBERS = Task("c", "dev", "Make 65 …", ("76 - 11",), {"numbers": (19, 36, 55, 7), "target": 65})


class TestCountdown(RewardSuite):
    @pytest.fixture(params=["countdown", {"name": "countdown", "expression": 0.1}])
    def reward(self, request):
        return build("reward", request.param)


@pytest.mark.parametrize(
    ("answer", "score"),
    [
        # 55 + 36 - 19 - 7 = 65, each number once
        ("55 + 36 - 19 - 7", 1.0),
        ("(55+36)-(19+7) = 65", 1.0),
        (r"so it is \boxed{55 + 36 - 19 - 7}", 1.0),
        ("55 + 36 − 19 - 7", 0.0),  # another minus: not read
        ("55 + 36 - 26", 0.1),  # 26 is not given
        ("55 + 36 - 19 - 7 + 7 - 7", 0.1),  # 7 three times
        ("55 + 36 + 19 + 7", 0.1),  # 117
        ("55 / (36 - 36)", 0.1),  # no value
        ("65", 0.1),
        ("9**9**9**9", 0.0),
        ("__import__('os')", 0.0),
        ("5.5 * 10", 0.0),
        ("True + 64", 0.0),
        ("-55", 0.0),
        ("(" * 90 + "1" + ")" * 90, 0.1),
        ("1+" * 300 + "1", 0.0),  # too long to be read
        ("", 0.0),
        (None, 0.0),
    ],
)
def test_an_expression_counts_for_what_it_makes(answer, score):
    reward = build("reward", {"name": "countdown", "expression": 0.1})
    assert reward.score(answered(NUMBERS, answer)) == score


def test_some_of_the_numbers_are_enough_where_the_recipe_says_so():
    task = Task("c", "dev", "?", (), {"numbers": [3, 5, 50], "target": 15})
    scores = [
        build("reward", {"name": "countdown", "use": use}).score(answered(task, "3 * 5"))
        for use in ("some", "each")
    ]
    assert scores == [1.0, 0.0]


def test_fractions_on_the_way_are_exact():
    # 8 / (3 - 8 / 3) = 8 / (1/3) = 24
    task = Task("c", "dev", "?", (), {"numbers": [3, 3, 8, 8], "target": 24})
    assert build("reward", "countdown").score(answered(task, "8 / (3 - 8 / 3)")) == 1.0


def test_without_numbers_there_is_no_score():
    assert build("reward", "countdown").score(answered(Task("t", "dev", "?"), "1 + 1")) is None


@pytest.mark.envs
@pytest.mark.parametrize(
    ("gold", "answer", "score"),
    [
        (r"\frac{1}{2}+x", "x + 0.5", 1.0),
        (r"2\sqrt{2}", r"\boxed{\sqrt{8}}", 1.0),
        ("x^2-1", "(x-1)(x+1)", 1.0),
        (r"\text{Evelyn}", "Evelyn", 1.0),
        ("7", "7.0", 1.0),
        ("x", "y", 0.0),
        ("(1, 2)", "(2, 1)", 0.0),
        ("5", "$", 0.0),
    ],
)
def test_what_sympy_finds_equal_is_equal(gold, answer, score):
    task = Task("t", "dev", "?", (gold,))
    assert build("reward", "math_verify").score(answered(task, answer)) == score


@pytest.mark.envs
def test_an_answer_that_takes_for_ever_is_not_equal_and_the_next_one_is_compared():
    reward = build("reward", {"name": "math_verify", "seconds": 1.5})
    task = Task("t", "dev", "?", ("x + 1",))
    assert reward.score(answered(task, "9^{9^{9^{9^9}}}")) == 0.0
    assert reward.score(answered(task, "1 + x")) == 1.0
