"""What a curriculum would pick, hand-checked on small made-up tasks."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from tests.tracking.made import store

from agentrecipes.analysis.preview import preview
from agentrecipes.analysis.success_rates import Recorded, Simulated, from_file, from_run
from agentrecipes.errors import RecipeError
from agentrecipes.recipe.load import load
from agentrecipes.records import Task

RECIPE = Path(__file__).parents[2] / "recipes" / "rag_r1.yaml"


def task(name, kind, **data: int):
    return Task(name, "train", "?", ("x",), {"type": kind, **data})


MIXED = [task("t0", "b", hops=1), task("t1", "a", hops=3), task("t2", "b", hops=2)]


def previewed(*overrides: str, rate: float = 0.5, iterations: int = 3):
    recipe = load(RECIPE, ["environment.dataset.train=60", "rollout.tasks=10", *overrides])
    rates = Recorded("made up", {}, {}, rate)
    return preview(lambda i: recipe.stage(1, i), rates, iterations=iterations, seed=recipe.seed)


def test_simulated_types_start_evenly_spaced_by_their_hops():
    # b has 1.5 hops in the mean and a 3; without hops the name decides
    assert Simulated.of(MIXED).start == pytest.approx({"b": 0.6, "a": 0.1})
    three = Simulated.of([task(kind, kind) for kind in ("z", "x", "y")]).start
    assert three == pytest.approx({"x": 0.6, "y": 0.35, "z": 0.1})
    assert "b 0.6, a 0.1" in Simulated.of(MIXED).source


def test_a_simulated_rate_rises_with_the_tasks_of_its_type_alone():
    rates = Simulated.of(MIXED)
    assert rates.rate(MIXED[1], {"b": 1000}) == pytest.approx(0.1)
    # after 200 tasks 1/e of the failures are left: 1 - 0.9 / e
    assert rates.rate(MIXED[1], {"a": 200}) == pytest.approx(1 - 0.9 / math.e)


def test_recorded_rates_fall_back_to_the_type_and_then_to_the_mean(tmp_path):
    path = tmp_path / "rates.jsonl"
    path.write_text('{"task": "t0", "rate": 0.25}\n\n{"type": "a", "rate": 1}\n')
    own = [*MIXED, task("t3", "c")]
    rates = from_file(path, own)
    # b has t0's rate, a its own; the mean is over the three tasks whose type has a rate
    found = [rates.rate(each, {}) for each in own]
    assert found == [0.25, 1.0, 0.25, pytest.approx((0.25 + 1.0 + 0.25) / 3)]
    assert rates.rate(own[0], {"b": 999}) == 0.25
    assert "1 of 4 tasks, 2 types" in rates.source


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"task": "t0"}', "rates.jsonl:1: no rate of a task or type"),
        ('{"task": "t0", "rate": 1.5}', "rates.jsonl:1: no rate of a task or type"),
        ('{"task": "t0", "rate": true}', "rates.jsonl:1: no rate of a task or type"),
        ('{"task": "t0", "type": "a", "rate": 0.5}', "rates.jsonl:1: no rate of a task or type"),
        ('{"task": "other", "rate": 0.5}', "holds no rate of a training task"),
        ("", "holds no rate of a training task"),
    ],
)
def test_rates_that_say_nothing_are_refused(tmp_path, line, said):
    path = tmp_path / "rates.jsonl"
    path.write_text(line)
    with pytest.raises(RecipeError) as refused:
        from_file(path, MIXED)
    assert said in str(refused.value)


def test_a_run_s_rates_are_the_mean_returns_of_its_training_tasks(tmp_path):
    folder = store(tmp_path) / "demo-1"
    rates = from_run(folder, MIXED)
    # The stored runs give t0 a return of 1 and t1 of 0; t2's could not be computed: its type's.
    assert [rates.rate(each, {}) for each in MIXED] == [1.0, 0.0, 1.0]
    with pytest.raises(RecipeError, match="holds no rate"):
        from_run(folder, [task("elsewhere", "a")])


def test_uniform_picks_every_kind_alike_and_each_task_once():
    made = previewed(iterations=6)
    drawn = [each.id for one in made.iterations for each in one.tasks]
    assert sorted(drawn) == sorted(set(drawn))
    assert len(drawn) == 60
    kinds = [one.shares("hops") for one in made.iterations]
    assert sum(one.get("1", 0.0) for one in kinds) / 6 == pytest.approx(0.2)  # one type of five
    assert all(sum(one.values()) == pytest.approx(1.0) for one in kinds)
    assert [one.expected_success for one in made.iterations] == [0.5] * 6


@pytest.mark.parametrize(("rate", "left"), [(1.0, 6), (0.0, 60)])
def test_results_reach_the_curriculum(rate, left):
    # 60 tasks, ten an iteration: solved ones leave the pool, and after six iterations it is empty
    made = previewed("curriculum=hard_pool", rate=rate, iterations=70)
    assert len(made.iterations) == left  # unsolved ones leave after ten loops of six iterations
    assert f"iteration {left}: curriculum hard_pool: the pool is empty" in made.stopped


def test_attempts_succeed_as_often_as_the_rate_says():
    # hard_pool accepts what all four attempts solve: 0.5 ** 4 of 600 tasks, 37.5, deviation 5.9
    words = ("curriculum={name: hard_pool, loops: 1}", "rollout.group_size=4")
    more = ("environment.dataset.train=600", "rollout.tasks=100")
    made = previewed(*words, *more, iterations=7)
    accepted = int(made.stopped.partition("of 600 tasks ")[2].split()[0])
    assert 15 < accepted < 60


def test_schedules_of_a_curriculum_are_followed():
    weights = "chain-1: {schedule: steps, values: [1e9, 0], every: 2}, chain-2: 1"
    curriculum = f"curriculum={{name: weighted, weights: {{{weights}}}, others: 0}}"
    made = previewed(curriculum, iterations=4)
    first, second = {"chain-1": 1.0}, {"chain-2": 1.0}  # there are twelve tasks of either
    assert [one.shares("type") for one in made.iterations] == [first, first, second, second]


def test_a_stage_without_tasks_stops_at_once():
    recipe = load(RECIPE, ["environment.dataset.train=60"])

    class Nothing:
        """An environment without tasks."""

        def tasks(self, split) -> list[Task]:
            return []

    bare = recipe.stage(1).model_copy(update={"environment": Nothing()})
    made = preview(lambda _: bare, Recorded("", {}, {}, 0.5), iterations=3, seed=1)
    assert made.iterations == ()
    assert made.stopped == "iteration 0: the curriculum found nothing among 0 tasks"
