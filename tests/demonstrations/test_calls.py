"""Function calls to imitate: the gold ones, and what is spoilt in which share."""

from __future__ import annotations

from typing import Any

import pytest

from agentrecipes.components import build
from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.errors import RecipeError
from agentrecipes.rewards.bfcl import accepted
from agentrecipes.testing.suites import DatasetSuite

SMALL = {"name": "functions", "train": 80, "dev": 20, "test": 20}
CASES = build("environment", {"name": "bfcl", "dataset": SMALL, "instructions": "none"})


class TestFunctions(DatasetSuite):
    @pytest.fixture
    def dataset(self):
        return build("dataset", SMALL)


def drawn(count: int = 200, seed: int = 5, **shares: float) -> list[Demonstration]:
    part: Any = build("demonstrations", {"name": "calls", "count": count, **shares})
    return list(part.draw(CASES, seed))


def right(one: Demonstration) -> bool:
    return accepted(one.task.data, CASES.protocol.parse(one.turns[0][0]).calls)


def test_without_faults_every_demonstration_is_right_and_thinks_as_its_teacher():
    for one in drawn():
        [(said, shown)] = one.turns
        assert (right(one), one.correct, shown) == (True, True, "")
        assert CASES.protocol.parse(said).thought == one.task.data["thought"]


@pytest.mark.parametrize("fault", ["wrong_value", "left_out", "wrong_function"])
def test_a_fault_makes_calls_wrong_in_its_share(fault):
    told = drawn(count=400, **{fault: 0.5})
    calling = [one for one in told if one.task.data["ground_truth"]]
    wrong = [one for one in calling if not right(one)]
    assert all(one.correct for one in told if one not in calling)
    assert [one for one in calling if not one.correct] == wrong
    assert 0.4 < len(wrong) / len(calling) < 0.6  # of 300: 0.5 within 3.5 standard deviations


def test_calls_without_a_thought_are_right_and_no_model_of_a_message():
    told = drawn(no_thought=1.0)
    assert all(right(one) and not one.correct for one in told)
    assert all("think" not in one.turns[0][0] for one in told)


def test_the_same_seed_draws_the_same_and_another_seed_others():
    shares = {"wrong_value": 0.3, "left_out": 0.3}
    assert drawn(**shares) == drawn(**shares) != drawn(seed=6, **shares)


def test_shares_of_more_than_all_are_refused():
    with pytest.raises(RecipeError, match="add up to more than 1"):
        drawn(wrong_value=0.6, no_thought=0.5)


def test_a_case_asks_by_its_arguments_alone():
    for task in CASES.tasks("train"):
        shown, _, asked = task.question.partition(". ")
        names = {one["name"] for one in task.data["functions"]}
        assert all(name in shown and name not in asked.split("=")[0] for name in names)
        assert len(names) == {"multiple": 3, "irrelevance": 2}.get(task.type, 1)
        assert len(task.data["ground_truth"]) == {"irrelevance": 0, "parallel": 2}.get(task.type, 1)


def test_the_tiny_model_reads_a_case_in_few_tokens():
    tokenizer = build("model", {"name": "tiny", "text": "code"}).tokenizer()
    [one, *_] = drawn(count=1)
    text = one.task.question + one.turns[0][0]
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == text
    assert len(ids) < 130
    odd = "<|user|> 'é' \n\n [f(x=\"1\")] </think>\n\t<pad>"
    own = tokenizer(odd, add_special_tokens=False, split_special_tokens=True)["input_ids"]
    assert tokenizer.backend_tokenizer.decode(own, skip_special_tokens=False) == odd
