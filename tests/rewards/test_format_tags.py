"""Rewards for form, and for nothing at all."""

from __future__ import annotations

import pytest

from agentrecipes.components import build
from agentrecipes.records import Stop, Task
from agentrecipes.rewards.constant import Constant
from agentrecipes.rewards.format_tags import FormatTags
from agentrecipes.rewards.protocol import View
from agentrecipes.testing.suites import RewardSuite

SEARCH = "<think> t </think> <search> q\n2. r </search>"
ANSWER = "<think> 3 < 5 </think> <answer> a </answer>"


class TestFormatTags(RewardSuite):
    @pytest.fixture
    def reward(self):
        return FormatTags()


class TestConstant(RewardSuite):
    @pytest.fixture
    def reward(self):
        return Constant(value=-2.5)


def view(*actions: str, answer="a", valid=None):
    count = len(actions)
    return View(
        task=Task("t", "dev", "?", ("a",)),
        actions=actions,
        observations=("",) * count,
        calls=((),) * count,
        valid=valid or (True,) * count,
        answer=answer,
        stop=Stop.ANSWERED if answer else Stop.TURNS,
    )


def test_well_formed_to_the_end_is_one():
    assert FormatTags().score(view(SEARCH, SEARCH, ANSWER)) == 1.0
    assert FormatTags().score(view(ANSWER)) == 1.0


def test_every_fault_costs_its_share():
    assert FormatTags().score(view(SEARCH, SEARCH, answer=None)) == 2 / 3  # no answer
    assert FormatTags().score(view("q", SEARCH, ANSWER)) == 3 / 4  # one turn of three
    assert FormatTags().score(view(SEARCH, ANSWER, valid=(False, True))) == 2 / 3
    assert FormatTags().score(view("", answer=None)) == 0.0
    assert FormatTags().score(view(answer=None)) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "<search> q </search>",
        "so <think> t </think> <answer> a </answer>",
        "<think> t </think> so <answer> a </answer>",
        "<think> t </think> <answer> a </answer> so",
        "<think> t </think> <answer>  </answer>",
        "<think> t <answer> a </answer>",
        "<think> t </think> <answer> a </search>",
        "<think> t </think> <search> q </search> <answer> a </answer>",
        "<think> t </think> <think> t </think> <answer> a </answer>",
        "<think> t </think> <information> x </information>",
    ],
)
def test_a_turn_is_one_thought_and_one_action_and_nothing_else(text):
    assert FormatTags().score(view(text)) == 0.5  # only the answer counts


def test_thoughts_can_be_optional():
    free = build("reward", {"name": "format_tags", "thought": False})
    assert free.score(view("<search> q </search>", ANSWER)) == 1.0
    assert free.score(view("so <search> q </search>", ANSWER)) == 2 / 3


def test_a_constant_is_itself():
    assert Constant().score(view(answer=None)) == 1.0
    assert build("reward", {"name": "constant", "value": -2.5}).score(view(ANSWER)) == -2.5
