"""Tasks with tools: what a turn's calls lead to, whatever the tools do."""

from __future__ import annotations

import asyncio
from dataclasses import replace
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
from agentrecipes.rollout.play import play as play_texts
from agentrecipes.rollout.play import texts
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


class Changing(Component):
    """Is described in another way each time that somebody asks."""

    asked: list[int] = Field(default_factory=list)

    @property
    def schema(self) -> Any:
        self.asked.append(1)
        return {"name": "changing", "description": f"the {len(self.asked)}th", "parameters": {}}

    async def call(self, arguments):
        return ToolResult(Call("changing", {}), "done")


def test_what_becomes_of_a_call_has_a_name():
    told = {"odd": Odd().schema, "changing": {"name": "changing"}}
    desk = Desk({"odd": Odd(), "changing": Changing()}, Limits(seconds=0.05, characters=9), told)
    calls = {
        "result": odd("fine"),
        "error": odd("error"),
        "raised": odd("key"),
        "late": odd("fine", seconds=60),
        "cut": odd("huge"),
        "unknown_tool": Call("od", {}),
        "wrong_arguments": odd("fine", more=1),
        "changed": Call("changing", {}),
    }
    results = answers(*calls.values(), desk=desk)
    assert [result.outcome for result in results] == list(calls)
    assert results[-1].error == "the tool is no longer what it was said to be, and was not called"


class Counting(Component):
    """Counts the calls of an episode; `log` has those that are open."""

    log: list[str] = Field(default_factory=list)
    broken: bool = False  # cannot be closed

    @property
    def schemas(self) -> Any:
        return [{"name": "count", "description": "Counts.", "parameters": {"properties": {}}}]

    def session(self, task, seed):
        self.log.append(task.id)
        return Counted(self, task.id)


class Counted:
    def __init__(self, part: Counting, name: str) -> None:
        self.part, self.name, self.calls, self.starts = part, name, 0, 0
        self.schema = part.schemas[0]
        self.tools = [self]

    async def call(self, arguments):
        self.calls += 1
        return ToolResult(Call("count", {}), str(self.calls))

    async def start(self):
        self.starts += 1

    async def close(self):
        self.part.log.remove(self.name)
        if self.part.broken:
            raise OSError("stuck")


COUNT = Action(calls=(Call("count", {}),))


def counting(**fields: object) -> tuple[Any, Counting]:
    part = Counting(**fields)
    return tools(tools=["calculator", part], call_rewards={"result": 0.25, "error": -0.5}), part


def test_each_episode_has_tools_of_its_own_and_closes_them():
    environment, part = counting()
    first, second = (environment.open(task, 0) for task in environment.tasks("dev")[:2])

    async def both() -> list[str]:
        steps = [await one.step(COUNT) for one in (first, second, first)]
        open_then = list(part.log)
        await first.step(Action(calls=(Call("calculator", {"expression": "1 + 1"}),)))
        assert [first.sessions[0].starts, second.sessions[0].starts] == [2, 1]
        await first.close()
        await second.close()
        return [*(step.observation.split()[1] for step in steps), *open_then, *part.log]

    assert asyncio.run(both()) == ["1", "1", "2", "dev-0", "dev-1"]
    assert '"count"' in first.messages[0].content


def test_a_turn_is_paid_for_what_its_calls_came_to():
    environment, _ = counting()
    episode = environment.open(environment.tasks("dev")[0], 0)
    calls = (*COUNT.calls, Call("count", {"x": 1}), *COUNT.calls)
    outcome = asyncio.run(episode.step(Action(calls=calls)))
    assert outcome.calls == ("result", "wrong_arguments", "result")
    assert outcome.reward == 0.25 + 0.25 - 0.5 == 0.0
    assert asyncio.run(episode.step(COUNT)).reward == 0.25


def test_the_environment_s_own_reward_reaches_the_return_turn_by_turn():
    environment, _ = counting()
    task = environment.tasks("dev")[0]
    said = ['<tool_call>{"name": "count", "arguments": {}}</tool_call>'] * 2
    played = play_texts(environment, task, agent=texts([*said, "<answer> 3 </answer>"]))
    assert played.outcomes == (("result",), ("result",), ())
    part = build("reward", "environment")
    assert part.score(played.view) == [0.25, 0.25, 0.0]
    assert part.score(replace(played.view, rewards=None)) is None


def test_a_tool_that_cannot_be_closed_fails_its_own_episode_alone():
    environment, part = counting(broken=True)
    done = play_texts(environment, environment.tasks("dev")[0], agent=texts([]))
    assert (done.stop, part.log) == (Stop.TOOL_ERROR, [])
    assert done.error == "a tool could not be closed: stuck"


def test_two_sources_of_one_name_are_refused_when_the_first_episode_opens():
    environment = tools(tools=[Counting(), Counting()])
    with pytest.raises(RecipeError, match="two tools have one name, of count, count"):
        environment.open(environment.tasks("dev")[0], 0)


class Dice(Component):
    """Never says the same twice."""

    rolls: list[int] = Field(default_factory=list)

    @property
    def schema(self) -> Any:
        return {**build("tool", "calculator").schema}

    async def call(self, arguments):
        self.rolls.append(1)
        return ToolResult(Call("calculator", {}), str(len(self.rolls)))


def test_the_suite_finds_an_environment_that_answers_differently_for_one_seed():
    suite = TestHermes()
    suite.played = 2
    with pytest.raises(AssertionError):
        suite.test_the_same_task_and_seed_give_the_same_episode(tools(tools=[Dice()]))
