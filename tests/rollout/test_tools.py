"""Tools in whole episodes: every protocol to the token, and what a tool's trouble leads to."""

from __future__ import annotations

import asyncio
import threading

import pytest
from playground import CHATML, tokenizer

from agentrecipes.components import build
from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Action, Call, Source, Stop
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.collect import Job, Setting, collect
from agentrecipes.tools.function import tool

RELEASED = threading.Event()  # lets go of a tool that hangs
MEETING: list[asyncio.Event] = []


@tool
def lamp(do: str) -> str:
    """Switches a lamp on."""
    if do == "hang":
        RELEASED.wait(60)
    if do == "fail":
        raise TaskFailed("the lamp broke")
    if do == "raise":
        raise LookupError("no such lamp")
    return f"did {do}"


@tool
async def rendezvous(others: int) -> str:
    """Waits until so many are there."""
    MEETING.append(own := asyncio.Event())
    if len(MEETING) % others == 0:
        for event in MEETING:
            event.set()
    await own.wait()
    return "met"


def episodes(*said: object, count: int = 1, **fields: object):
    """Trajectories that say these actions or texts, one a turn."""
    parts = {"dataset": "arithmetic", "tools": ["lamp", "rendezvous"], "instructions": "none"}
    environment = build("environment", {"name": "tools", **parts, **fields})
    texts = [each if isinstance(each, str) else environment.protocol.write(each) for each in said]
    made = tokenizer(CHATML)
    engine = ScriptedEngine(made, lambda request: texts[request.key[-2]])
    tasks = environment.tasks("train")[:count]
    jobs = [Job(task, task.id, key=(7, "stage", 0, "rollout")) for task in tasks]
    setting = Setting(environment, engine, Chat(made), tokens=4000, tokens_per_turn=900)
    return collect(jobs, setting), made


def do(what: str) -> Action:
    return Action("next", (Call("lamp", {"do": what}),))


DONE = Action("done", answer="4")


@pytest.mark.parametrize("protocol", ["hermes", "react", "pythonic"])
def test_an_observation_is_a_user_message_of_its_own(protocol):
    [[played], made] = episodes(do("it"), DONE, protocol=protocol)
    assert (played.stop, played.answer, len(played.turns)) == (Stop.ANSWERED, "4", 2)
    turn, last = played.turns
    assert "did it" in turn.observation_text
    shown = made.decode(last.prompt)
    assert f"<|im_start|>user\n{turn.observation_text}<|im_end|>" in shown
    assert shown.count("<|im_start|>assistant\n") == 2
    observed = [
        token
        for token, source in zip(turn.observation, turn.observation_sources, strict=True)
        if source == Source.OBSERVATION
    ]
    assert made.decode(observed) == turn.observation_text


def test_a_block_of_code_is_a_call_of_python():
    run = Action("t", (Call("python", {"code": "x = 2\nprint(x)"}),))
    [[played], _] = episodes(run, DONE, protocol="code", tools=["python"])
    assert played.turns[0].observation_text == "Output:\n2\n"
    assert played.turns[0].calls == run.calls


def test_trouble_in_a_tool_is_shown_and_the_episode_goes_on():
    [[played], _] = episodes(do("raise"), DONE)
    assert "error: LookupError: no such lamp" in played.turns[0].observation_text
    assert (played.stop, played.turns[0].valid) == (Stop.ANSWERED, True)


def test_a_tool_that_hangs_is_left_behind():
    [[played], _] = episodes(do("hang"), DONE, limits={"seconds": 0.05})
    RELEASED.set()
    assert "error: no result within 0.05 s" in played.turns[0].observation_text
    assert played.stop == Stop.ANSWERED


def test_a_broken_tool_ends_its_trajectory_and_no_other():
    [broken, _] = episodes(do("fail"), DONE, count=2)
    assert [(one.stop, one.error) for one in broken] == [(Stop.TOOL_ERROR, "the lamp broke")] * 2


def test_what_cannot_be_read_is_hinted_at_twice_and_then_the_end():
    bad = '<tool_call>{"name": "lamp"}</tool_call>'
    [[played], _] = episodes(bad, bad, bad)
    assert played.stop == Stop.INVALID
    assert [turn.valid for turn in played.turns] == [False] * 3
    assert "has no object of arguments" in played.turns[0].observation_text


def test_sixty_four_episodes_wait_for_their_tools_side_by_side():
    # None of the calls comes back before all 64 are there: one after the other they would time out.
    meeting = Action("next", (Call("rendezvous", {"others": 64}),))
    [played, _] = episodes(meeting, meeting, DONE, count=64, limits={"seconds": 60})
    assert {one.stop for one in played} == {Stop.ANSWERED}
    assert all("met" in turn.observation_text for one in played for turn in one.turns[:2])
