"""Countdown tasks: every one can be solved, and its gold expression solves it."""

from __future__ import annotations

import pytest

from agentrecipes.components import build
from agentrecipes.testing.suites import DatasetSuite
from agentrecipes.tools.calculator import value_of

TASKS = build("dataset", {"name": "countdown", "train": 200, "dev": 60, "test": 60})
SPLITS = ("train", "dev", "test")


class TestCountdown(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return TASKS


class TestSamples(DatasetSuite):
    @pytest.fixture(params=["gsm8k", "math"])
    def dataset(self, request):
        return build("dataset", {"name": "sample", "set": request.param})


@pytest.mark.parametrize("split", SPLITS)
def test_the_expression_makes_the_target(split):
    for task in TASKS.tasks(split):
        assert value_of(task.data["expression"]) == task.data["target"]
        assert task.gold_answers == (task.data["expression"],)
        assert task.data["target"] not in task.data["numbers"]
        assert f"Make {task.data['target']} from the numbers " in task.question


def test_the_splits_share_no_question():
    questions = [task.question for split in SPLITS for task in TASKS.tasks(split)]
    assert len(questions) == len(set(questions)) == 320


def test_types_come_in_turn_and_numbers_stay_small():
    narrow = build("dataset", {"name": "countdown", "numbers": [2, 5], "largest": 12, "dev": 8})
    assert [len(task.data["numbers"]) for task in narrow.tasks("dev")] == [2, 5] * 4
    assert [task.type for task in narrow.tasks("dev")[:2]] == ["numbers-2", "numbers-5"]
    assert max(number for task in narrow.tasks("dev") for number in task.data["numbers"]) <= 12


def test_a_sample_says_how_it_is_measured_and_whether_it_can_be_searched_in():
    sets = {
        name: build("dataset", {"name": "sample", "set": name}) for name in ("gsm8k", "hotpotqa")
    }
    assert {name: one.metrics for name, one in sets.items()} == {
        "gsm8k": ("math_equal",),
        "hotpotqa": ("exact_match",),
    }
    assert [sets[name].has_corpus for name in ("gsm8k", "hotpotqa")] == [False, True]
    assert sets["gsm8k"].corpus("dev") == ()


def test_an_unknown_sample_is_refused_with_a_suggestion():
    with pytest.raises(ValueError, match=r"no sample is called 'gsm'. Did you mean 'gsm8k'"):
        build("dataset", {"name": "sample", "set": "gsm"})
