"""Every task equally often, in a random order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.curricula.uniform import Uniform
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Task
from agentrecipes.testing.suites import CurriculumSuite

TASKS = [Task(f"t{n}", "train", "?") for n in range(10)]


class TestUniform(CurriculumSuite):
    @pytest.fixture
    def curriculum(self):
        return Uniform()


def iterate(iterations, count, seed):
    """How often each task was drawn, and the draws, over some iterations."""
    curriculum, state, draws = Uniform(), {}, []
    for iteration in range(iterations):
        own = derive(seed, iteration)  # a run gives each iteration a seed of its own
        draws.append(curriculum.pick(state, TASKS, count=count, seed=own))
        state = curriculum.observe(state, {task.id: 0.5 for task in draws[-1]})
    return Counter(task.id for draw in draws for task in draw), draws


@given(st.integers(1, 12), st.integers(1, 10), st.integers(0, 2**40))
def test_no_task_is_ever_two_ahead_of_another(iterations, count, seed):
    drawn, draws = iterate(iterations, count, seed)
    times = [drawn[task.id] for task in TASKS]
    assert max(times) - min(times) <= 1
    assert all(len({task.id for task in draw}) == count for draw in draws)


def test_an_epoch_covers_all_tasks_in_another_order_each_time():
    _, draws = iterate(4, 10, seed=3)
    assert all(len({task.id for task in draw}) == 10 for draw in draws)
    assert len({tuple(task.id for task in draw) for draw in draws}) == 4


def test_a_task_without_results_comes_again_first():
    curriculum = Uniform()
    state = curriculum.observe({}, {task.id: 1.0 for task in TASKS if task.id != "t4"})
    for seed in range(20):
        assert curriculum.pick(state, TASKS, count=1, seed=seed) == [TASKS[4]]


def test_more_than_there_are_is_every_task_before_any_comes_again():
    state = Uniform().observe({}, {"t0": 1.0})
    drawn = Uniform().pick(state, TASKS, count=19, seed=1)
    assert {task.id for task in drawn[:9]} == {f"t{n}" for n in range(1, 10)}
    assert Counter(task.id for task in drawn) == Counter([t.id for t in TASKS] * 2) - Counter(
        ["t0"]
    )


def test_every_task_is_as_likely_as_another_at_first():
    first = Counter(Uniform().pick({}, TASKS, count=1, seed=n)[0].id for n in range(2000))
    assert all(140 < first[task.id] < 260 for task in TASKS)  # 200, standard deviation 13


def test_without_tasks_there_is_nothing_to_draw():
    assert Uniform().pick({}, [], count=3, seed=0) == []
