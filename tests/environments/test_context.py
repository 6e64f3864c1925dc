"""Which turns a policy goes on seeing, and when its answer counts."""

from __future__ import annotations

import asyncio
import math
from random import Random

import pytest
from tests.tolerances import FLOAT64

from agentrecipes.components import build
from agentrecipes.environments.context import Context, context_of, wandering
from agentrecipes.environments.halting import Halting
from agentrecipes.environments.protocol import Outcome
from agentrecipes.environments.stepping import Past, step
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Action, Call, Message
from agentrecipes.rollout.play import play, texts
from agentrecipes.testing.suites import EnvironmentSuite

SEARCH = Action("t", (Call("search", {"query": "q"}),))
BACKTRACK = Action("t", (Call("backtrack", {}),))
SUMMARY = Action("t", (Call("summary", {"text": "s"}),))
UNREAD = Action(error="no search or answer was closed")
ANSWER = Action("t", answer="a")
WORLD = {"name": "world", "train": 20, "dev": 20, "test": 20, "chains": [1, 2]}


def environment(**fields: object):
    parts = {"name": "search", "dataset": WORLD, "protocol": "stack", "max_turns": 6}
    return build("environment", {**parts, "context": {"policy": "stack"}, **fields})


class TestStack(EnvironmentSuite):
    played = 10

    @pytest.fixture
    def environment(self):
        return environment()


@pytest.mark.parametrize(
    ("actions", "shown"),
    [
        ([], []),
        ([SEARCH, SEARCH], [0, 1]),
        ([SEARCH, SEARCH, BACKTRACK], [0, 2]),  # 1 is popped, the backtrack itself is pushed
        ([SEARCH, BACKTRACK, BACKTRACK], [2]),  # the earlier backtrack alone is taken back
        ([SEARCH, SEARCH, BACKTRACK, BACKTRACK], [0, 3]),
        ([BACKTRACK], [0]),  # nothing to take back
        ([SEARCH, UNREAD, BACKTRACK], [0, 2]),  # what could not be read is a unit like any other
        ([SEARCH, SEARCH, SUMMARY], [2]),
        ([SEARCH, SUMMARY, SEARCH, BACKTRACK], [1, 3]),
        ([SEARCH, SUMMARY, SUMMARY, SEARCH], [2, 3]),
    ],
)
def test_a_stack_shows_what_was_not_taken_off(actions, shown):
    assert Context(policy="stack").shown(actions) == tuple(shown)
    assert Context().shown(actions) == tuple(range(len(actions)))


def test_a_summary_may_stand_for_the_last_turn_alone():
    last = Context(policy="stack", summary="last")
    assert last.shown([SEARCH, SEARCH, SUMMARY, SEARCH]) == (0, 2, 3)


def test_a_call_beside_others_edits_nothing():
    both = Action("t", (*SEARCH.calls, *BACKTRACK.calls))
    assert Context(policy="stack").shown([SEARCH, both]) == (0, 1)


@pytest.mark.parametrize(("turns", "shown"), [(1, (3,)), (3, (1, 2, 3)), (9, (0, 1, 2, 3))])
def test_a_window_shows_the_latest_turns(turns, shown):
    window = Context(policy="window", turns=turns)
    assert window.shown([SEARCH, BACKTRACK, UNREAD, SEARCH]) == shown


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"context": {"policy": "window"}}, "context.turns"),
        ({"context": {"policy": "stack", "turns": 2}}, "context.turns"),
        ({"context": {"summary": "last"}}, "context.summary"),
        ({"context": {"policy": "stack"}, "protocol": "search_tags"}, "context.policy"),
        ({"halting": {"state": "perplexity"}}, "halting.state"),
        ({"halting": {"least_actions": 6}}, "halting.least_actions"),
    ],
)
def test_what_would_have_no_effect_is_a_problem(fields, path):
    [problem] = environment(**fields).rules(None)
    assert problem.path == path
    assert problem.suggestion.startswith("Write ")
    assert not list(environment().rules(None))


def drawn(world, *actions: Action, logp=()):
    """What the last of `actions` draws after the others."""

    async def last() -> Outcome:
        episode = world.open(world.tasks("dev")[0], 0)
        past = Past(tuple(actions[:-1]), tuple(logp))
        return await step(world, episode, actions[-1], past=past)

    return asyncio.run(last())


def test_a_backtrack_draws_the_note_and_a_summary_nothing():
    world = environment(context={"policy": "stack", "note": "again"})
    assert drawn(world, SEARCH, BACKTRACK).observation == "\n<observation> again </observation>\n"
    assert "nothing to take back" in drawn(world, BACKTRACK).observation
    assert drawn(world, SEARCH, SUMMARY).observation == "\n"
    assert drawn(world, SEARCH, SUMMARY).calls == ("edited",)


def test_a_protocol_for_any_tool_has_the_edits_as_tools():
    tools = {"name": "tools", "dataset": WORLD, "tools": ["calculator"], "protocol": "hermes"}
    world = build("environment", {**tools, "context": {"policy": "stack"}})
    opening = world.open(world.tasks("dev")[0], 0).messages[0].content
    assert "backtrack" in opening
    assert "summary" in opening
    assert "Rethink" in drawn(world, SEARCH, BACKTRACK).observation
    both = Action("t", (*BACKTRACK.calls, Call("calculator", {"expression": "1 + 1"})))
    assert drawn(world, SEARCH, both).observation.count("stand alone") == 2
    assert drawn(world, SEARCH, both).calls == ("error", "error")


def test_without_a_stack_and_its_protocol_a_backtrack_is_a_call_like_any_other():
    world = environment(protocol="search_tags", context={})
    assert "only search takes calls here" in drawn(world, SEARCH, BACKTRACK).observation


class Painter:
    """An episode that gives a whole new context."""

    async def step(self, action):
        return Outcome(context=(Message("user", "anew"),))


def test_two_that_edit_the_context_do_not_go_together():
    past = Past((SEARCH,))
    assert asyncio.run(step(environment(context={}), Painter(), SEARCH, past=past)).context
    with pytest.raises(TaskFailed, match=r"context\.policy is 'stack'"):
        asyncio.run(step(environment(), Painter(), SEARCH, past=past))


def test_an_environment_without_the_field_shows_all_turns():
    assert context_of(object()).policy == "concatenate"


def test_a_random_agent_edits_its_stack_now_and_then():
    world = environment()
    agent = wandering(world, lambda _: SEARCH, Random(3))
    tools = [agent(None).calls[0].tool for _ in range(200)]
    # 200 draws at .1 each: 20, with a standard deviation of 4.2
    assert 5 < tools.count("backtrack") < 40
    assert 5 < tools.count("summary") < 40
    assert wandering(environment(context={}), agent, Random(3)) is agent


# When an answer counts.


def test_an_answer_counts_after_so_many_actions_and_on_the_last_turn():
    world = environment(halting={"least_actions": 2, "note": "not yet"}, max_turns=4)
    refused = drawn(world, SEARCH, ANSWER)
    assert (refused.done, refused.answer) == (False, None)
    assert refused.observation == "\n<observation> not yet </observation>\n"
    assert drawn(world, SEARCH, BACKTRACK, ANSWER).answer == "a"
    assert drawn(world, UNREAD, UNREAD, UNREAD, ANSWER).answer == "a"  # the fourth of four


def test_the_state_is_made_of_the_log_probabilities_of_the_answer_s_turn():
    logp = (-0.5, -0.25, -0.75)
    assert Halting().measured(logp) == pytest.approx(1.5, rel=FLOAT64["rtol"])
    perplexity = Halting(uncertainty=2.0, state="perplexity")
    assert perplexity.measured(logp) == pytest.approx(math.exp(0.5), rel=FLOAT64["rtol"])


@pytest.mark.parametrize(
    ("bound", "logp", "counts"),
    [
        (1.6, (-0.5, -0.25, -0.75), True),
        (1.5, (-0.5, -0.25, -0.75), False),  # the state must be below
        (1.2, (), True),  # written, not sampled: nobody knows how sure it was
    ],
)
def test_an_unsure_answer_does_not_count(bound, logp, counts):
    world = environment(halting={"uncertainty": bound})
    assert drawn(world, SEARCH, ANSWER, logp=logp).done is counts


def test_an_episode_goes_on_after_an_answer_that_does_not_count():
    world = environment(halting={"least_actions": 1})
    said = ["<answer> x </answer>", "<search> y </search>", "<answer> z </answer>"]
    played = play(world, world.tasks("dev")[0], agent=texts(said))
    assert (played.answer, played.turns) == ("z", 3)
    assert "does not count yet" in played.view.observations[0]


@pytest.mark.parametrize("least", [1, 3])
def test_an_oracle_searches_on_until_its_answer_counts(least):
    world = environment(halting={"least_actions": least})
    for task in world.tasks("dev")[:8]:
        played = play(world, task, agent=world.oracle)
        assert played.answer == task.gold_answers[0]
        assert played.turns == max(least, len(task.data["plan"])) + 1
    tools = {"name": "tools", "dataset": WORLD, "tools": ["calculator"], "protocol": "hermes"}
    told = build("environment", {**tools, "halting": {"least_actions": least}, "max_turns": 5})
    [task] = told.tasks("dev")[:1]  # it lists no calls that could be made again: the fifth counts
    assert play(told, task, agent=told.oracle).turns == 5
