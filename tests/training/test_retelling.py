"""A resumed run tells its tracker what it told before, point for point."""

from __future__ import annotations

import time

from tests.training.test_recorder import Listening

from agentrecipes.tracking.tables import MetricRow, Tables
from agentrecipes.training.position import Position
from agentrecipes.training.recorder import Recorder
from agentrecipes.training.retelling import retell_evaluations, retell_stage


def recorder(tmp_path, heard, **more: object) -> Recorder:
    return Recorder(
        stage="s",
        tables=Tables(tmp_path, "run"),
        tracker=heard,
        progress=heard,
        stop=lambda: False,
        save=lambda position: None,
        evaluate=lambda position: None,
        every=0,
        began=time.perf_counter(),
        offset=100,
        **more,
    )


def test_a_mean_of_ten_steps_survives_a_kill_in_its_middle(tmp_path):
    whole, first, second = Listening(), Listening(), Listening()
    steps = [
        {"loss/total": float(step)} | ({"rare": 5.0} if step == 3 else {}) for step in range(20)
    ]
    undisturbed = recorder(tmp_path / "whole", whole)
    for step, figures in enumerate(steps):
        undisturbed.step(step, figures)
    cut = recorder(tmp_path / "cut", first)
    for step, figures in enumerate(steps[:14]):
        cut.step(step, figures)
        if step == 12:
            cut.checkpoint(Position(iteration=13))
    rows = Tables(tmp_path / "cut", "run").told("s")
    recent = retell_stage(rows, second, offset=100, reads=True)
    assert second.points == whole.points[:1]  # the first mean, told again
    again = recorder(tmp_path / "cut", second, recent=recent)
    for step in range(13, 20):
        again.step(step, steps[step])
    assert second.points == whole.points
    assert [step for step, _ in whole.points] == [110, 120]


def test_iterations_and_evaluations_are_told_at_their_places():
    heard = Listening()
    rows = [MetricRow(0, 1, "a", 0.5, 0.0), MetricRow(0, 1, "b", 1.5, 0.0),
            MetricRow(1, 2, "a", 0.25, 0.0)]  # fmt: skip
    assert retell_stage(rows, heard, offset=30, reads=False) == []
    assert heard.points == [(31, {"a": 0.5, "b": 1.5}), (32, {"a": 0.25})]
    heard.points.clear()
    told = [
        {
            "stage": "t",
            "iteration": 2,
            "split": "dev",
            "mode": "greedy",
            "metric": "m",
            "value": 0.5,
        },
        {
            "stage": "t",
            "iteration": 4,
            "split": "dev",
            "mode": "greedy",
            "metric": "m",
            "value": None,
        },
    ]
    retell_evaluations(told, heard, offsets={"t": 30})
    assert heard.points == [(32, {"eval/dev/greedy/m": 0.5})]
