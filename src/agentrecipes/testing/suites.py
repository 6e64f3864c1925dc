"""What every part of a kind must hold: subclass a suite, and give the part as a fixture.

class TestMine(RewardSuite):
    @pytest.fixture
    def reward(self):
        return Mine()

Class attributes say what differs from part to part; methods without ``test_`` can be overridden.
"""

from __future__ import annotations

import asyncio
import copy
import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from agentrecipes.components import build
from agentrecipes.curricula.protocol import Curriculum
from agentrecipes.datasets.protocol import Dataset
from agentrecipes.environments.protocol import Environment
from agentrecipes.numerics.answer_text import normalise
from agentrecipes.records import Action, Call, Stop, Task
from agentrecipes.rewards.normalisation import matches
from agentrecipes.rewards.protocol import Reward, View
from agentrecipes.testing.play import Played, drive, play
from agentrecipes.testing.text_suites import ProtocolSuite, RetrieverSuite

__all__ = [
    "CurriculumSuite",
    "DatasetSuite",
    "EnvironmentSuite",
    "ProtocolSuite",
    "RetrieverSuite",
    "RewardSuite",
]

SPLITS = ("train", "dev", "test")
FINGERPRINT = """
import hashlib, json, sys
from agentrecipes.components import build
dataset = build("dataset", json.loads(sys.argv[1]))
tasks = [(t.id, t.question, t.gold_answers, sorted(t.data.items()))
         for split in ("train", "dev", "test") for t in dataset.tasks(split)]
corpus = [(p.id, p.title, p.text) for p in dataset.corpus("train")]
print(hashlib.sha256(repr((tasks, corpus)).encode()).hexdigest())
"""


class DatasetSuite:
    """Fixture: ``dataset``."""

    def test_the_splits_share_no_id_and_every_task_knows_its_split(self, dataset: Dataset) -> None:
        ids = [task.id for split in SPLITS for task in dataset.tasks(split)]
        assert ids
        assert len(ids) == len(set(ids))
        assert all(task.split == split for split in SPLITS for task in dataset.tasks(split))

    def test_every_task_brings_the_fields_that_are_promised(self, dataset: Dataset) -> None:
        for task in _every(dataset):
            given = {"question", *task.data, *(["golden_answers"] if task.gold_answers else [])}
            assert task.question.strip()
            assert dataset.fields <= given

    def test_every_gold_answer_is_worth_the_best_score(self, dataset: Dataset) -> None:
        for name in dataset.metrics:
            metric: Reward = build("reward", name)
            for task in _every(dataset):
                scores = [metric.score(answered(task, gold)) for gold in task.gold_answers]
                assert scores == [metric.range[1]] * len(scores)

    def test_supporting_passages_are_in_the_corpus(self, dataset: Dataset) -> None:
        for split in SPLITS:
            ids = [passage.id for passage in dataset.corpus(split)]
            assert len(ids) == len(set(ids))
            for task in dataset.tasks(split) if ids else ():
                assert set(task.data.get("supporting_ids", ())) <= set(ids)

    def test_another_process_sees_the_same_tasks(self, dataset: Any) -> None:
        assert fingerprint(dataset, hash_seed="1") == fingerprint(dataset, hash_seed="2")


class EnvironmentSuite:
    """Fixture: ``environment``."""

    played = 30  # tasks of a split that are played
    splits: Sequence[str] = ("train", "dev", "test")
    oracle_at_least = 1.0  # mean score of the oracle
    random_at_most = 0.15

    def score(self, played: Played) -> float:
        """What an episode is worth, in [0, 1]."""
        return float(played.answer is not None and matches(played.answer, played.task.gold_answers))

    def tasks(self, environment: Environment) -> list[Task]:
        """The tasks to play."""
        return [task for split in self.splits for task in environment.tasks(split)[: self.played]]

    def test_the_same_task_and_seed_give_the_same_episode(self, environment: Environment) -> None:
        for task in self.tasks(environment):
            assert play(environment, task, seed=3) == play(environment, task, seed=3)

    def test_the_oracle_wins_within_the_turns(self, environment: Environment) -> None:
        played = [play(environment, task, seed=n) for n, task in enumerate(self.tasks(environment))]
        assert all(one.stop == Stop.ANSWERED for one in played)
        assert sum(map(self.score, played)) / len(played) >= self.oracle_at_least

    def test_a_random_agent_is_understood_and_loses(self, environment: Environment) -> None:
        tasks = enumerate(self.tasks(environment))
        played = [play(environment, task, agent="random", seed=n) for n, task in tasks]
        assert all(action.valid for one in played for action in one.actions)
        assert len({one.turns for one in played}) > 1
        assert sum(map(self.score, played)) / len(played) <= self.random_at_most

    def test_no_opening_message_tells_the_answer(self, environment: Environment) -> None:
        for task in self.tasks(environment):
            posed = environment.open(task, 5)
            shown = normalise(" ".join(message.content for message in posed.messages))
            for gold in map(normalise, posed.task.gold_answers):
                told = f" {gold} " in f" {shown} " and gold not in ("yes", "no")
                assert not told or gold in normalise(posed.task.question)

    def test_an_answer_ends_the_episode_and_is_kept(self, environment: Environment) -> None:
        [task, *_] = self.tasks(environment)
        episode = environment.open(task, 0)
        say = Action(thought="done", answer="forty two")
        played = asyncio.run(drive(environment, episode, lambda _: say))
        assert (played.answer, played.stop, len(played.turns)) == ("forty two", Stop.ANSWERED, 1)


class RewardSuite:
    """Fixture: ``reward``. Override `views` for what only your reward looks at."""

    def views(self) -> list[View]:
        """Trajectories right, wrong, unanswered, unreadable and empty."""
        task = Task("t", "dev", "Where?", ("Rome", "the city of Rome"), {"type": "bridge"})
        texts = ("Rome", "the  ROME!", "Paris", "", "a", "Rome Rome", "yes", "\u0130stanbul", None)
        views = [answered(task, text) for text in texts]
        wrong = View(task, ("x", "y"), ("o", ""), ((), ()), (False, True), None, Stop.INVALID)
        return [*views, wrong, View(task, (), (), (), (), None, Stop.VOID)]

    def test_scores_are_finite_and_in_the_declared_range(self, reward: Reward) -> None:
        low, high = reward.range
        for view in self.views():
            score = reward.score(view)
            for value in score if isinstance(score, list) else [score]:
                assert value is None or (math.isfinite(value) and low <= value <= high)

    def test_a_list_has_one_score_for_each_turn(self, reward: Reward) -> None:
        for view in self.views():
            score = reward.score(view)
            assert not isinstance(score, list) or len(score) == len(view.actions)

    def test_the_same_view_gives_the_same_score(self, reward: Reward) -> None:
        for view in self.views():
            assert reward.score(view) == reward.score(copy.deepcopy(view))

    def test_without_gold_answers_a_reward_that_reads_them_is_null(self, reward: Reward) -> None:
        if "golden_answers" in reward.reads:
            assert reward.score(answered(Task("t", "dev", "Where?"), "Rome")) is None

    def test_its_yaml_form_builds_it_again(self, reward: Any) -> None:
        assert build("reward", json.loads(json.dumps(reward.dump()))) == reward


class CurriculumSuite:
    """Fixture: ``curriculum``."""

    def tasks(self) -> list[Task]:
        """Twelve tasks of two types."""
        return [Task(f"t{n}", "train", "?", ("x",), {"type": f"k{n % 2}"}) for n in range(12)]

    def state(self, curriculum: Curriculum) -> Mapping[str, Any]:
        """What is known after two iterations."""
        tasks = self.tasks()
        state: dict[str, Any] = {}
        for place, half in enumerate((tasks[:6], tasks[3:9])):
            results = {task.id: (place + number) / 12 for number, task in enumerate(half)}
            state = dict(curriculum.observe(state, results))
        return state

    def test_the_same_state_and_seed_give_the_same_draw(self, curriculum: Curriculum) -> None:
        tasks, state = self.tasks(), self.state(curriculum)
        for count in (0, 1, 5, 12, 30):
            first = curriculum.pick(state, tasks, count=count, seed=7)
            assert first == curriculum.pick(copy.deepcopy(state), tasks, count=count, seed=7)
            assert len(first) == count
            assert set(map(id, first)) <= set(map(id, tasks))

    def test_an_empty_state_is_enough_to_begin(self, curriculum: Curriculum) -> None:
        assert len(curriculum.pick({}, self.tasks(), count=5, seed=1)) == 5

    def test_states_are_plain_and_never_changed(self, curriculum: Curriculum) -> None:
        state = self.state(curriculum)
        before = copy.deepcopy(state)
        curriculum.observe(state, {"t0": 1.0, "t11": 0.0})
        curriculum.pick(state, self.tasks(), count=5, seed=2)
        assert state == before
        assert json.loads(json.dumps(state)) == state

    def test_states_do_not_grow_with_the_iterations(self, curriculum: Curriculum) -> None:
        state, sizes = self.state(curriculum), []
        results = {task.id: number / 11 for number, task in enumerate(self.tasks())}
        for iteration in range(40):
            state = curriculum.observe(state, results)
            sizes += [json.dumps(state).count(",")] if iteration in (9, 39) else []
        assert sizes[0] == sizes[1]

    def test_without_tasks_nothing_is_picked(self, curriculum: Curriculum) -> None:
        assert curriculum.pick(self.state(curriculum), [], count=5, seed=1) == []

    def test_another_seed_gives_another_draw(self, curriculum: Curriculum) -> None:
        draws = [curriculum.pick({}, self.tasks(), count=6, seed=seed) for seed in range(20)]
        assert len({tuple(task.id for task in draw) for draw in draws}) > 1


def _every(dataset: Dataset) -> list[Task]:
    return [task for split in SPLITS for task in dataset.tasks(split)]


def answered(task: Task, answer: str | None) -> View:
    """A trajectory of one search and one turn with that answer, or without one."""
    calls = ((Call("search", {"query": "q"}),), ())
    texts = ("<think> t </think> <search> q </search>", f"<think> t </think> <answer> {answer} ")
    stop = Stop.TURNS if answer is None else Stop.ANSWERED
    return View(task, texts, ("\nfound\n", ""), calls, (True, answer is not None), answer, stop)


def fingerprint(dataset: Any, hash_seed: str) -> str:
    """A hash of all tasks and passages, taken in a process with its own string hashing."""
    command = [sys.executable, "-c", FINGERPRINT, json.dumps(dataset.dump())]
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()
