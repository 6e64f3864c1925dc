"""Curricula and schedules in runs: what is picked, what a resume keeps, and how a pool ends."""

from __future__ import annotations

from collections import defaultdict

import pytest
from small import Quiet, collector, experiment, ready, small, trained
from test_resume import interrupted, rows, same

from agentrecipes.analysis.preview import preview
from agentrecipes.analysis.success_rates import Recorded, from_run
from agentrecipes.errors import RunStopped
from agentrecipes.experiment import run
from agentrecipes.training.position import Position
from agentrecipes.training.stage import StageRun

QUICK = ("stages.imitate.steps=2", "evaluation.every=0", "evaluation.tasks=2", "rewards=[spread]")


def picked(folder):
    """Iteration → the ids of its training tasks, sorted."""
    found = defaultdict(set)
    for row in rows(folder, "trajectories"):
        if row["stage"] == "reinforce" and row["split"] == "train":
            found[row["iteration"]].add(row["task"])
    return {iteration: sorted(tasks) for iteration, tasks in found.items()}


def test_the_preview_picks_what_the_run_picks(tmp_path):
    words = (*QUICK, "curriculum={name: weighted, weights: {chain-3: 5}}")
    trained(tmp_path / "run", words)
    recipe = small(*words)
    rates = Recorded("", {}, {}, 0.5)
    made = preview(lambda i: recipe.stage(1, i), rates, iterations=3, seed=recipe.seed)
    told = {one.iteration: sorted(task.id for task in one.tasks) for one in made.iterations}
    assert picked(tmp_path / "run") == told
    assert len({tuple(tasks) for tasks in told.values()}) == 3
    tasks = recipe.stage(1).environment.tasks("train")
    recorded = from_run(tmp_path / "run", tasks)
    assert {task.id for task in tasks} & set(recorded.tasks) == {
        t for own in told.values() for t in own
    }


def test_a_resume_keeps_what_the_curriculum_knows_and_where_schedules_stand(tmp_path):
    words = (
        *QUICK,
        "environment.dataset.train=7",  # four an iteration: results decide what comes again
        "curriculum={name: success_band, low: 0.0, high: 0.02, memory: 0.5}",
        "rewards=[{name: spread, weight: {schedule: linear, from: 3, to: 1, over: 4}}]",
        "stages.reinforce.environment.max_turns={schedule: steps, values: [1, 2, 3], every: 1}",
        "stages.reinforce.iterations=4",
    )
    whole = run(experiment(small(*words), tmp_path / "whole"))
    assert whole["status"] == "finished"
    assert interrupted(tmp_path / "cut", "reinforce", 2, *words) == "interrupted"
    assert run(experiment(small(*words), tmp_path / "cut"), resume=True)["status"] == "finished"
    same(tmp_path / "whole", tmp_path / "cut")
    weights = {0: 3.0, 1: 2.5, 2: 2.0, 3: 1.5}
    trained_on = [row for row in rows(tmp_path / "cut", "trajectories") if row["split"] == "train"]
    assert {row["iteration"] for row in trained_on} == set(weights)
    for row in trained_on:
        part = dict(row["parts"])["spread"]
        assert row["total"] == pytest.approx(weights[row["iteration"]] * part)
        assert row["turns"] <= min(row["iteration"] + 1, 3)


def test_from_iteration_100_on_the_second_value_holds_until_200(tmp_path):
    # ScalingInter-RL's resume fault: its scheduler is one behind, and the third value comes early.
    recipe = small(
        "rewards=[{name: spread, weight: {schedule: steps, values: [1, 2, 4], every: 100}}]",
        "stages.reinforce.iterations=102",
    )
    ran, _, sampler = ready(recipe, tmp_path / "run")
    observer = Quiet()
    StageRun(lambda i: recipe.stage(1, i), ran.policy.module, sampler, observer).run(
        Position(iteration=99)
    )
    ratios = [
        {round(each.total / each.parts["spread"], 9) for each in one.scored if each.total}
        for one in observer.iterations
    ]
    assert ratios == [{1.0}, {2.0}, {2.0}]


def test_an_empty_pool_stops_the_run_and_says_why(tmp_path):
    words = (*QUICK, "environment.dataset.train=4", "rewards=[constant]")
    curriculum = "curriculum={name: hard_pool, accept_from: 0}"
    heard = Heard()
    summary = run(experiment(small(*words, curriculum), tmp_path / "run"), heard)
    assert summary["status"] == "stopped"
    assert picked(tmp_path / "run") == {0: [f"train-{n}" for n in range(4)]}
    assert "the pool is empty; of 4 tasks 4 were accepted" in heard.notes[-1]


class Heard:
    """Progress that remembers what it was told in words."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def stage(self, name, algorithm, total) -> None: ...

    def advance(self, step, figures) -> None: ...

    def evaluation(self, row) -> None: ...

    def note(self, text) -> None:
        self.notes.append(text)


class Idle:
    """A curriculum that never finds anything."""

    def pick(self, state, tasks, *, count, seed) -> list:
        return []


def test_a_curriculum_that_picks_nothing_ends_the_iteration_with_an_error(tmp_path):
    made, fields, _ = collector(tmp_path, "environment.dataset.train=9")
    idle = fields.model_copy(update={"curriculum": Idle()})
    with pytest.raises(RunStopped, match="the curriculum found nothing among 9 tasks"):
        made.iteration(idle, Position())
