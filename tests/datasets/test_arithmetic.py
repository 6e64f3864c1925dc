"""Generated sums: their values, their splits, and the calls that solve them."""

from __future__ import annotations

import pytest

from agentrecipes.components import build
from agentrecipes.testing.suites import DatasetSuite
from agentrecipes.tools.calculator import value_of

SUMS = build("dataset", {"name": "arithmetic", "train": 300, "dev": 90, "test": 90})
SPLITS = ("train", "dev", "test")


class TestArithmetic(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return SUMS


@pytest.mark.parametrize("split", SPLITS)
def test_the_listed_calls_give_the_gold_answer(split):
    for task in SUMS.tasks(split):
        [turn] = task.data["calls"]
        values = [str(value_of(call["arguments"]["expression"])) for call in turn]
        assert task.gold_answers == (" and ".join(values),)
        assert all(call["arguments"]["expression"] in task.question for call in turn)


def test_the_splits_share_no_question_and_repeat_none():
    questions = [task.question for split in SPLITS for task in SUMS.tasks(split)]
    assert len(questions) == len(set(questions)) == 480


def test_the_types_come_in_turn():
    kinds = [task.type for task in SUMS.tasks("train")[:7]]
    assert kinds == ["1-1", "1-2", "1-3", "2-1", "2-2", "2-3", "1-1"]


def test_a_question_reads_as_one():
    narrow = build("dataset", {"name": "arithmetic", "parts": [2], "operators": [2], "dev": 5})
    for task in narrow.tasks("dev"):
        one, two = (call["arguments"]["expression"] for call in task.data["calls"][0])
        assert task.question == f"What are {one} and {two}?"
        assert one.count("(") == two.count("(") == 1


def test_a_longer_split_begins_like_a_shorter_one():
    longer = build("dataset", {"name": "arithmetic", "train": 400})
    assert longer.tasks("train")[:300] == SUMS.tasks("train")
