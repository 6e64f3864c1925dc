"""An attempt that goes on where another stood takes over its tokens as they are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from playground import CHATML, TASK, House, Orders, tokenizer
from test_context import LOOK, STACK, UNDO, WALL, Sliding

from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.environments.context import Context
from agentrecipes.records import Stop
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.collect import Job, Setting, collect

LATER = (WALL, LOOK, "say no !")


def played(house, said, *, taken=(), attempt=0, template=None):
    """An attempt that says `said`, and what was asked for on the way."""
    made = tokenizer(template)
    engine = ScriptedEngine(made, lambda request: said[request.key[-2]])
    setting = Setting(house, engine, Chat(made))
    job = Job(TASK, "t", attempt, key=(7, "stage", 0, "rollout"), taken=taken)
    [trajectory] = collect([job], setting)
    return trajectory, engine


HOUSES = {
    "plain": lambda: House(max_turns=9),
    "tool": lambda: House(Orders("tool"), max_turns=9),
    "stack": lambda: Sliding(STACK),
    "window": lambda: Sliding(Context(policy="window", turns=1), Orders()),
}


@pytest.mark.parametrize("template", [None, CHATML], ids=["own", "chatml"])
@pytest.mark.parametrize("house", HOUSES)
@pytest.mark.parametrize("turns", [1, 2])
def test_it_is_the_attempt_that_says_all_of_it(house, turns, template):
    first = (LOOK, UNDO if house == "stack" else WALL)
    source, _ = played(HOUSES[house](), (*first, "say yes !"), template=template)
    said = (*first[:turns], *LATER)
    whole, asked = played(HOUSES[house](), said, attempt=1, template=template)
    branch, asked_too = played(
        HOUSES[house](), said, taken=source.turns[:turns], attempt=1, template=template
    )
    assert [timeless(turn) for turn in branch.turns] == [timeless(turn) for turn in whole.turns]
    assert (branch.stop, branch.answer, branch.taken_turns) == (Stop.ANSWERED, "no", turns)
    assert asked_too.requests == asked.requests[turns:]


def timeless(turn):
    return replace(turn, engine_seconds=0.0, tool_seconds=0.0)


def test_the_turns_that_were_taken_over_have_their_log_probabilities_and_no_sampling_time():
    source, _ = played(House(), (LOOK, "say yes !"))
    told = replace(source.turns[0], logp_rollout=(-1.0, -2.0, -3.0), engine_seconds=5.0)
    branch, _ = played(House(), (LOOK, "say no !"), taken=(told,))
    assert branch.turns[0].logp_rollout == (-1.0, -2.0, -3.0)
    assert branch.turns[0].engine_seconds == 0.0


@pytest.mark.parametrize("became", ["seen go", ValueError("gone")])
def test_an_environment_that_answers_differently_is_a_tools_failure(became):
    source, _ = played(House(), (LOOK, "say yes !"))
    house = House(outcomes={"door": became})
    branch, engine = played(house, (LOOK, "say no !"), taken=source.turns[:1])
    assert (branch.stop, branch.turns, engine.requests) == (Stop.TOOL_ERROR, (), [])
    assert "does not answer as it did when turn 0 is taken again" in branch.error
    assert house.opened[0].closed
