"""Tasks with tools: what a turn's calls lead to, whatever the tools do."""

from __future__ import annotations

import asyncio
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import Field

from agentrecipes.components import Component, build
from agentrecipes.environments.callers import drawer
from agentrecipes.environments.calling import Desk, Limits
from agentrecipes.errors import RecipeError, TaskFailed
from agentrecipes.records import Action, Call, Stop, Task, ToolResult
from agentrecipes.testing.play import play
from agentrecipes.testing.suites import EnvironmentSuite
from agentrecipes.tools.schema import faults

HERMES = {"name": "hermes", "calls_per_turn": 4}
SUMS = {"name": "arithmetic", "train": 60, "dev": 60, "test": 60}


def tools(**fields: object) -> Any:
    """The environment of sums with a calculator."""
    parts = {"dataset": SUMS, "tools": ["calculator"], "protocol": HERMES}
    return build("environment", {"name": "tools", **parts, **fields})


class TestHermes(EnvironmentSuite):
    @pytest.fixture
    def environment(self):
        return tools()


class TestOneCallATurn(EnvironmentSuite):
    @pytest.fixture(params=["hermes", "react"])
    def environment(self, request):
        return tools(protocol=request.param)


class TestPythonic(EnvironmentSuite):
    @pytest.fixture
    def environment(self):
        return tools(protocol={"name": "pythonic", "answers": "plain"}, instructions="user")


class Odd(Component):
    """Does what it is told to, as no tool should."""

    @property
    def schema(self) -> Any:
        properties = {"what": {"type": "string"}, "seconds": {"type": "number"}}
        return {"name": "odd", "parameters": {"properties": properties, "required": ["what"]}}

    async def call(self, arguments):
        if "seconds" in arguments:
            await asyncio.sleep(arguments["seconds"])
        return ODD[arguments["what"]]()


def failing(error: BaseException):
    def fail() -> None:
        raise error

    return fail


CALL = Call("odd", {"what": "fine"})
ODD = {
    "fine": lambda: ToolResult(Call("another", {}), "fine"),
    "error": lambda: ToolResult(CALL, error="no such thing"),
    "key": failing(KeyError("tea")),
    "late": failing(TimeoutError("the server is late")),
    "exit": failing(SystemExit(3)),
    "broken": failing(TaskFailed("the tool broke")),
    "huge": lambda: ToolResult(CALL, "x" * 10_000_000),
    "huge error": lambda: ToolResult(CALL, error="y" * 10_000_000),
    "half": lambda: ToolResult(CALL, "a\ud83db"),
    "bytes": lambda: ToolResult(CALL, b"x"),  # type: ignore[arg-type]
    "text": lambda: "x",
    "nothing": lambda: None,
}
DESK = Desk({"odd": Odd(), "calculator": build("tool", "calculator")}, Limits(seconds=0.05))


def answers(*calls: Call, desk: Desk = DESK) -> list[ToolResult]:
    return asyncio.run(desk.answer(calls))


def odd(what: str, **more: object) -> Call:
    return Call("odd", {"what": what, **more})


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (odd("error"), "no such thing"),
        (odd("key"), "KeyError: 'tea'"),
        (odd("late"), "TimeoutError: the server is late"),
        (odd("exit"), "SystemExit: 3"),
        (odd("fine", seconds=60), "no result within 0.05 s"),
        (Call("od", {}), "no tool is called 'od'. Did you mean 'odd'?"),
        (Call("odd", {"waht": "fine"}), "what is missing; no argument is called 'waht'."),
        (odd("fine", seconds="2"), 'seconds must be number, but got "2"'),
    ],
)
def test_an_error_is_the_result_of_its_call_alone(call, error):
    fine, wrong, also = answers(odd("fine"), call, odd("fine"))
    assert (fine, also) == (ToolResult(odd("fine"), "fine"),) * 2
    assert (wrong.call, wrong.text) == (call, "")
    assert (wrong.error or "").startswith(error)


def test_a_result_of_ten_megabytes_is_cut_and_says_so():
    desk = Desk({"odd": Odd()}, Limits(characters=5))
    [text, error] = answers(odd("huge"), odd("huge error"), desk=desk)
    assert text.text == "xxxxx … (cut: 10000000 characters)"
    assert error.error == "yyyyy … (cut: 10000000 characters)"
    assert len(answers(odd("huge"))[0].text) < 100_100


def test_half_a_character_is_replaced():
    assert answers(odd("half"))[0].text == "a?b"


@pytest.mark.parametrize("what", ["bytes", "text", "nothing"])
def test_what_is_no_result_fails_the_tool(what):
    with pytest.raises(TaskFailed, match=r"the tool odd gave a .*Give"):
        answers(odd(what))


def test_a_tool_that_fails_ends_the_turn_and_leaves_nothing_running():
    async def both() -> int:
        with pytest.raises(TaskFailed, match="broke"):
            await DESK.answer([odd("fine", seconds=60), odd("broken")])
        await asyncio.sleep(0)
        return len(asyncio.all_tasks())

    assert asyncio.run(both()) == 1  # this one


class Meeting(Component):
    """Comes back when as many calls as `others` says are waiting."""

    others: int
    waiting: list[asyncio.Event] = Field(default_factory=list)

    @property
    def schema(self) -> Any:
        return {"name": "meeting"}

    async def call(self, arguments):
        self.waiting.append(own := asyncio.Event())
        if len(self.waiting) == self.others:
            for event in self.waiting:
                event.set()
        await own.wait()
        return ToolResult(Call("meeting", {}), "met")


def test_the_calls_of_a_turn_run_side_by_side():
    desk = Desk({"meeting": Meeting(others=100)}, Limits(seconds=60))
    results = answers(*[Call("meeting", {})] * 100, desk=desk)
    assert {result.text for result in results} == {"met"}


def test_a_turn_shows_its_results_in_the_order_of_the_calls():
    environment = tools()
    episode = environment.open(environment.tasks("dev")[0], 0)
    calls = tuple(Call("calculator", {"expression": f"{n} * 7"}) for n in (2, 3))
    shown = asyncio.run(episode.step(Action(calls=calls))).observation
    assert shown == ("<tool_response>\n14\n</tool_response>\n<tool_response>\n21\n</tool_response>")


def test_the_oracle_asks_at_once_what_the_protocol_lets_it_ask_at_once():
    task = next(task for task in tools().tasks("dev") if task.type == "2-1")
    assert len(play(tools(), task).turns) == 2
    one = tools(protocol="react")
    assert len(play(one, task).turns) == 3
    hurried = play(tools(protocol="react", max_turns=2), task)
    assert (hurried.stop, len(hurried.turns)) == (Stop.ANSWERED, 2)


def test_instructions_stand_where_the_recipe_says():
    task = tools().tasks("dev")[0]
    system, user = tools(system="Be brief.").open(task, 0).messages
    assert system.role == "system"
    assert system.content.startswith("Be brief.\n\n# Tools")
    assert '"calculator"' in system.content
    assert user.content == task.question
    [user] = tools(instructions="user", prompt="Q: {question}").open(task, 0).messages
    assert user.content.startswith("# Tools")
    assert user.content.endswith(f"\n\nQ: {task.question}")
    [user] = tools(instructions="none").open(task, 0).messages
    assert user.content == task.question


def codes(**fields: object) -> list[str]:
    return [problem.code for problem in tools(**fields).rules(SimpleNamespace())]


def test_a_stage_that_cannot_work_is_a_problem():
    assert codes() == []
    assert codes(prompt="Answer!") == ["no_question"]
    assert codes(tools=["calculator", "calculator"]) == ["two_tools_of_one_name"]
    assert codes(protocol="code") == ["tool_without_a_call"]
    assert codes(protocol="search_tags") == ["tool_without_a_call"]


def test_a_random_agent_draws_arguments_of_every_type():
    properties = {
        "a": {"type": "integer", "minimum": 3, "maximum": 4},
        "b": {"type": "number"},
        "c": {"type": "boolean"},
        "d": {"type": "array", "items": {"type": "string"}},
        "e": {"type": "object", "properties": {"x": {"type": "null"}}, "required": ["x"]},
        "f": {"enum": ["s", "m"]},
        "g": {"anyOf": [{"type": "null"}, {"type": ["integer", "string"]}]},
    }
    parameters = {"properties": properties, "required": list(properties)}
    task = tools().tasks("dev")[0]
    agent = drawer(task, [{"name": "f", "parameters": parameters}], Random(3))
    actions = [agent(f"seen{n}") for n in range(200)]
    calls = [action.calls[0] for action in actions if action.calls]
    assert all(faults(call.arguments, parameters) == [] for call in calls)
    assert {call.arguments["a"] for call in calls} == {3, 4}
    assert any(action.answer == "seen3" for action in actions)
    assert 50 < len(calls) < 150


def test_scripted_demonstrations_follow_the_listed_calls():
    drawn = build("demonstrations", {"name": "scripted", "count": 12}).draw(tools(), 5)
    assert [one.correct for one in drawn] == [True] * 12
    assert all("<tool_response>" in one.turns[0][1] for one in drawn)


@pytest.mark.parametrize("calls", [[{"tool": "f", "arguments": {}}], [["f"]], [[{"tool": "f"}]], 3])
def test_calls_that_are_no_list_of_turns_are_the_data_s_fault(calls):
    task = Task("t-1", "train", "Q?", ("4",), {"calls": calls})
    with pytest.raises(RecipeError, match="the task 't-1': 'calls' is no list of turns"):
        tools().oracle(task)


def test_a_task_without_calls_or_gold_answers_can_still_be_played():
    say = tools().oracle(Task("t", "train", "Q?"))
    assert say(None) == Action("done", answer="unknown")
