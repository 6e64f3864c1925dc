"""Problems worked out with tools: what the oracle computes, and that it is right."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agentrecipes.components import build
from agentrecipes.environments.math import expressions
from agentrecipes.records import Stop, Task
from agentrecipes.testing.play import play
from agentrecipes.testing.suites import EnvironmentSuite

COUNTDOWN = {"name": "countdown", "train": 20, "dev": 20, "test": 20}


def math(**fields: object) -> Any:
    """Countdown with a calculator."""
    parts = {"dataset": COUNTDOWN, "tools": ["calculator"], "protocol": "pythonic"}
    return build("environment", {"name": "math", **parts, **fields})


class TestCountdown(EnvironmentSuite):
    @pytest.fixture(params=["pythonic", "hermes"])
    def environment(self, request):
        return math(protocol=request.param)


class TestGsm8k(EnvironmentSuite):
    played = 15

    @pytest.fixture
    def environment(self):
        return math(dataset={"name": "sample", "set": "gsm8k"}, instructions="none", max_turns=9)


def test_python_is_the_tool_and_code_the_protocol_if_nothing_is_said():
    environment = build("environment", {"name": "math", "dataset": COUNTDOWN})
    task = environment.tasks("dev")[0]
    played = play(environment, task)
    expression = task.data["expression"]
    assert played.turns[0] == (
        f"<think> next </think>\n```python\nprint({expression})\n```",
        f"Output:\n{float(task.data['target']) if '/' in expression else task.data['target']}\n",
    )
    assert (played.stop, played.answer) == (Stop.ANSWERED, expression)
    [message] = played.messages
    assert message.content.startswith("Answer the question by writing Python")
    assert message.content.endswith(task.question)


def test_the_steps_of_a_solution_are_worked_out_in_their_order():
    solution = "He has 48/2 = <<48/2=24>>24 clips.\nIn all 48+24 = <<48+24=72>>72.\n#### 72"
    task = Task("t", "dev", "How many?", ("72",), {"solution": solution})
    assert expressions(task) == ["48/2", "48+24"]
    played = play(math(), task)
    assert [observation for _, observation in played.turns] == [
        "calculator: 24",
        "calculator: 72",
        "",
    ]
    assert play(math(max_turns=2), task).turns[0] == played.turns[0]
    assert play(math(max_turns=2), task).answer == "72"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"calls": [[{"tool": "calculator", "arguments": {"expression": "2 * 3"}}]]}, ["2 * 3"]),
        ({"expression": "4 - 1", "solution": "<<1+1=2>>"}, ["4 - 1"]),
        ({"solution": r"So $x = \boxed{4}$."}, []),
        ({}, []),
    ],
)
def test_what_is_computed_is_what_the_task_says(data, found):
    assert expressions(Task("t", "dev", "?", ("6",), data)) == found


def test_a_protocol_that_cannot_call_the_tool_is_a_problem():
    problems = list(math(protocol="code").rules(SimpleNamespace()))
    assert [problem.code for problem in problems] == ["tool_without_a_call"]
    assert list(math().rules(SimpleNamespace())) == []


def test_a_share_of_demonstrations_is_played_at_random():
    def right(share: float) -> int:
        part = build("demonstrations", {"name": "scripted", "count": 60, "random": share})
        return sum(bool(one.correct) for one in part.draw(math(), 5))

    assert right(0.0) == 60
    assert 15 < right(0.5) < 45
    assert right(1.0) == 0
