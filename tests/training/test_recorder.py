"""What the recorder writes, shows and asks for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from makers import trajectory, turn

from agentrecipes.records import EvaluationRow, Place, Scored
from agentrecipes.tracking.protocol import NullTracker
from agentrecipes.tracking.tables import Tables
from agentrecipes.training.collecting import Iteration
from agentrecipes.training.evaluation import Evaluated
from agentrecipes.training.position import Position
from agentrecipes.training.progress import Silent
from agentrecipes.training.recorder import Recorder, record_evaluations


class Listening(NullTracker, Silent):
    """A tracker and a watcher that remember."""

    def __init__(self) -> None:
        super().__init__()
        self.points: list[tuple[int, dict[str, float]]] = []
        self.shown: list[tuple[int, dict[str, float]]] = []

    def metrics(self, values, step) -> None:
        self.points.append((step, dict(values)))

    def advance(self, step, figures) -> None:
        self.shown.append((step, dict(figures)))


@pytest.fixture
def made(tmp_path):
    """A recorder, who listens to it, and what it asked for in order."""
    heard, asked = Listening(), []
    recorder = Recorder(
        stage="s",
        tables=Tables(tmp_path, "run"),
        tracker=heard,
        progress=heard,
        stop=lambda: "stop" in asked,
        save=lambda position: asked.append(("save", position.iteration)),
        evaluate=lambda position: asked.append(("evaluate", position.iteration)),
        every=2,
        began=time.perf_counter(),
        offset=100,
    )
    return recorder, heard, asked


def stored(folder: Path, table: str = "metrics") -> list[dict[str, Any]]:
    files = sorted((folder / table).glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


def collected() -> Iteration:
    one = trajectory(turn((1, 2), (7, 8)))
    return Iteration((), (Scored(one, {"part": 0.25}, 0.25, (0.25,)),), (0.5,), {})


def test_every_step_is_stored_and_the_mean_of_ten_is_shown(made, tmp_path):
    recorder, heard, _ = made
    for step in range(12):
        figures = {"loss/total": float(step)} | ({"rare": 5.0} if step == 3 else {})
        recorder.step(step, figures)
    assert stored(tmp_path) == []  # steps are written at checkpoints
    recorder.checkpoint(Position(iteration=12))
    losses = [row for row in stored(tmp_path) if row["name"] == "loss/total"]
    assert [(row["iteration"], row["step"], row["value"]) for row in losses] == [
        (step + 1, step + 1, float(step)) for step in range(12)
    ]
    # (0 + ... + 9) / 10; what a step did not have counts as zero, like skipped steps do
    expected = {"loss/total": 4.5, "rare": 0.5}
    assert heard.shown == [(10, expected)]
    assert heard.points == [(110, expected)]  # after the 100 steps of the stages before


def test_an_iteration_is_recorded_under_the_updates_that_came_before(made, tmp_path):
    recorder, heard, _ = made
    recorder.iteration(Position(iteration=1), collected(), {"loss/total": 0.125})
    rows = {row["name"]: (row["iteration"], row["step"], row["value"]) for row in stored(tmp_path)}
    assert rows["loss/total"] == (0, 1, 0.125)
    assert rows["reward/part"] == (0, 1, 0.25)
    [path] = (tmp_path / "trajectories").glob("*.parquet")
    [row] = pq.read_table(path).to_pylist()
    assert (row["iteration"], row["split"], row["mode"]) == (0, "train", "sampled")
    assert row["advantage_mean"] == 0.5
    [(step, values)] = heard.points
    assert (step, values["reward/total"]) == (101, 0.25)


def test_an_evaluation_on_training_tasks_leaves_the_training_rows_there(made, tmp_path):
    recorder, heard, _ = made
    place = Place("s", 0, "train", "sampled")
    row = EvaluationRow("s", 0, "train", "sampled", "part", 0.75, 1, None, {}, 1.0)
    one = Scored(trajectory(turn((1, 2), (7, 8))), {"part": 0.75}, 0.75, (0.75,))
    told = {"tables": recorder.tables, "tracker": heard, "progress": heard, "step": 0}
    record_evaluations([Evaluated(place, (row,), (one,))], **told)
    recorder.iteration(Position(iteration=1), collected(), {})
    for table in ("trajectories", "turns"):
        rows = stored(tmp_path, table)
        assert sorted(row["split"] for row in rows) == ["train", "train-evaluation"]
    totals = {row["split"]: row["total"] for row in stored(tmp_path, "trajectories")}
    assert totals == {"train": 0.25, "train-evaluation": 0.75}
    assert [row["split"] for row in stored(tmp_path, "evaluations")] == ["train"]


def test_an_evaluation_is_due_every_so_many_iterations(made):
    recorder, _, asked = made
    for done in range(1, 6):
        recorder.iteration(Position(iteration=done), collected(), {})
    assert asked == [("evaluate", 2), ("evaluate", 4)]
    asked.append("stop")
    recorder.iteration(Position(iteration=6), collected(), {})  # due, but saving comes first
    asked.remove("stop")
    assert asked == [("evaluate", 2), ("evaluate", 4)]
    recorder.every = 0
    recorder.iteration(Position(iteration=6), collected(), {})
    assert asked == [("evaluate", 2), ("evaluate", 4)]


def test_metrics_are_on_the_disk_before_the_checkpoint_that_counts_them(made, tmp_path):
    recorder, _, asked = made
    recorder.save = lambda position: asked.append(len(stored(tmp_path)))
    recorder.step(0, {"loss/total": 1.0})
    recorder.checkpoint(Position(iteration=1))
    assert asked == [1]
    recorder.checkpoint(Position(iteration=1))  # nothing new: nothing is written over
    assert len(stored(tmp_path)) == 1


def test_steps_that_are_made_again_take_the_place_of_the_old_ones(made, tmp_path):
    recorder, _, _ = made
    recorder.step(4, {"loss/total": 1.0})
    recorder.checkpoint(Position(iteration=5))
    for step in (4, 5):  # a resumed run begins at step 4 too, and writes a longer block
        recorder.step(step, {"loss/total": 2.0})
    recorder.checkpoint(Position(iteration=6))
    assert [(row["step"], row["value"]) for row in stored(tmp_path)] == [(5, 2.0), (6, 2.0)]


def test_it_asks_to_stop_when_the_run_is_asked_to(made):
    recorder, _, asked = made
    assert not recorder.wants_stop()
    asked.append("stop")
    assert recorder.wants_stop()
