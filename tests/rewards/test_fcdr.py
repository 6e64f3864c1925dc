"""FunReason's five checks: which of them a message fails, and what a judge may say."""

from __future__ import annotations

import pytest

from agentrecipes.components import build
from agentrecipes.protocols.pythonic import Pythonic
from agentrecipes.records import Stop, Task
from agentrecipes.rewards.fcdr import CHECKS
from agentrecipes.rewards.protocol import View

LISTS = Pythonic(answers="plain")
PROPERTIES = {"a": {"type": "string"}}
FUNCTION = {"name": "f", "parameters": {"type": "dict", "properties": PROPERTIES, "required": []}}
DATA = {"functions": (FUNCTION,), "ground_truth": ({"f": {"a": ["x"]}},)}
RIGHT = "<think> f takes a </think>\n[f(a='x')]"


def passed(message: str, category: str = "simple_python", **fields: object) -> list[float | None]:
    """What each check gives, the ones before it included."""
    action = LISTS.parse(message)
    task = Task("t", "dev", "?", (), {"category": category, **DATA})
    said = (message,), ("",), (action.calls,), (action.valid,), action.answer
    view = View(task, *said, Stop.ANSWERED)
    parts = [build("reward", {"name": "fcdr", "through": one, **fields}) for one in CHECKS]
    return [part.score(view) for part in parts]


@pytest.mark.parametrize(
    ("message", "checks"),
    [
        (RIGHT, 5),
        ("<think> f takes a </think>\nnothing", 0),  # no call
        ("<think> g </think>\n[g(a='x')]", 1),  # no such function
        ("[f(a='x')]", 2),  # no thought
        ("<think> whatever </think>\n[f(a='x')]", 2),  # the thought is not about f
        ("<think> f takes a </think>\n[f(a='y')]", 3),  # another value
        ("<think> f takes a </think>\nHere:\n[f(a='x')]", 4),  # words beside the call
    ],
)
def test_a_message_passes_the_checks_before_the_one_that_it_fails(message, checks):
    assert passed(message) == [1.0] * checks + [0.0] * (5 - checks)


def test_where_no_function_fits_an_answer_is_kept_as_it_is():
    assert passed("<think> no </think>\nnothing", "irrelevance") == [1.0] * 5
    assert passed(RIGHT, "irrelevance") == [0.0] * 5


def test_a_judge_of_thoughts_is_asked_at_the_third_check():
    for value, rest in ((0.6, 1.0), (0.4, 0.0)):
        judge = {"name": "constant", "value": value}
        assert passed(RIGHT, judge=judge) == [1.0, 1.0, rest, rest, rest]
    silent = {"name": "given", "field": "verdict"}
    assert passed(RIGHT, judge=silent) == [1.0, 1.0, None, None, None]


def test_a_task_that_is_no_case_has_no_score():
    view = View(Task("t", "dev", "?"), (RIGHT,), ("",), ((),), (True,), None, Stop.ANSWERED)
    assert build("reward", "fcdr").score(view) is None
