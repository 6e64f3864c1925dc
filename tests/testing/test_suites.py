"""The suites fail for parts that break the rules."""

from __future__ import annotations

from typing import ClassVar

import pytest

import agentrecipes.testing
from agentrecipes.components import build
from agentrecipes.curricula.uniform import Uniform
from agentrecipes.datasets.world import World
from agentrecipes.protocols.search_tags import SearchTags
from agentrecipes.records import Action, Call, Message, Stop, ToolResult
from agentrecipes.retrievers.bm25 import Bm25
from agentrecipes.testing import JudgeSuite, ToolSuite, suites
from agentrecipes.testing.play import play


class Generous:
    """A reward that leaves its range, and pays without gold answers."""

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})

    def score(self, view):
        return 2.0


class Forgetful(Uniform):
    """A curriculum that writes into the state that it was given."""

    def observe(self, state, results):
        state.setdefault("seen", {}).update(results)
        return state


class Telling:
    """An environment that tells the answer in its first message."""

    def __init__(self, environment) -> None:
        self._inside = environment

    def __getattr__(self, name) -> object:
        return getattr(self._inside, name)

    def open(self, task, seed):
        episode = self._inside.open(task, seed)
        message = Message("user", f"Say {episode.task.gold_answers[0]} .")
        return type(episode)(episode.task, (message,), episode.desk)


class Fragile(SearchTags):
    """A protocol that raises for what it cannot read."""

    def parse(self, text):
        return Action("", answer=text.split("<answer>")[1])


class Unsteady(Bm25):
    """A retriever that turns the order of the corpus around."""

    def open(self, corpus):
        return super().open(tuple(reversed(corpus)))


class Moody:
    """A tool that says something else each time, and accepts anything."""

    calls = 0
    schema: ClassVar = {"name": "moody", "description": "d", "parameters": {"type": "object"}}

    async def call(self, arguments):
        self.calls += 1
        return ToolResult(Call("moody", {}), str(self.calls))


class Same(World):
    """A dataset whose dev tasks are its training tasks."""

    def tasks(self, split):
        return super().tasks("train")


class Backwards:
    """A judge whose replies stand in the wrong order."""

    async def answer(self, prompts):
        return [prompt.upper() for prompt in reversed(prompts)]


class MoodySuite(ToolSuite):
    good: ClassVar = {}


SUITES = {**vars(suites), "ToolSuite": MoodySuite, "JudgeSuite": JudgeSuite}


def environment():
    return build("environment", {"name": "search", "dataset": "world"})


@pytest.mark.parametrize(
    ("suite", "check", "part", "error"),
    [
        ("RewardSuite", "scores_are_finite_and_in_the_declared_range", Generous(), AssertionError),
        (
            "RewardSuite",
            "without_gold_answers_a_reward_that_reads_them_is_null",
            Generous(),
            AssertionError,
        ),
        ("CurriculumSuite", "states_are_plain_and_never_changed", Forgetful(), AssertionError),
        ("EnvironmentSuite", "no_opening_message_tells_the_answer", Telling, AssertionError),
        (
            "ProtocolSuite",
            "malformed_text_is_an_action_and_never_an_exception",
            Fragile(),
            IndexError,
        ),
        ("RetrieverSuite", "ties_keep_the_order_of_the_corpus", Unsteady(), AssertionError),
        ("ToolSuite", "the_same_call_gives_the_same_result", Moody(), AssertionError),
        (
            "JudgeSuite",
            "there_is_one_reply_for_each_prompt_in_their_order",
            Backwards(),
            AssertionError,
        ),
        (
            "DatasetSuite",
            "the_splits_share_no_id_and_every_task_knows_its_split",
            Same(),
            AssertionError,
        ),
    ],
)
def test_a_broken_part_fails_its_suite(suite, check, part, error):
    part = part(environment()) if part is Telling else part
    with pytest.raises(error):
        getattr(SUITES[suite](), f"test_{check}")(part)


def test_suites_are_offered_by_the_package_of_checks():
    assert agentrecipes.testing.RewardSuite is suites.RewardSuite
    assert agentrecipes.testing.ProtocolSuite is suites.ProtocolSuite


def test_a_played_episode_is_a_view_for_rewards():
    one = environment()
    task = one.tasks("dev")[1]
    played = play(one, task)
    view = played.view
    assert build("reward", "exact_match").score(view) == 1.0
    assert build("reward", "format_tags").score(view) == 1.0
    assert (view.stop, view.valid, len(view.calls)) == (Stop.ANSWERED, (True,) * 3, 3)
    assert view.calls[0][0].arguments["query"].startswith(task.data["plan"][0][0])
