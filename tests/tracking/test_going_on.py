"""What a resumed run finds: old rows forgotten, metrics read back, one writer, a whole log."""

from __future__ import annotations

import json
import multiprocessing
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from tests.tracking.made import scored

from agentrecipes.errors import RecipeError
from agentrecipes.records import EvaluationRow, Judgement, Place
from agentrecipes.tracking import manifest
from agentrecipes.tracking.events import Events
from agentrecipes.tracking.running import held, was_left
from agentrecipes.tracking.tables import MetricRow, Tables


def metric(tables, step):
    tables.metrics("s", [MetricRow(step, step, "m", float(step), 0.0)], name=f"{step - 1:08d}")


def evaluated(tables, iteration, split="dev"):
    row = EvaluationRow("s", iteration, split, "sampled", metric="m", value=0.5, tasks=1,
                        standard_error=None, by={}, rounds_mean=0.0)  # fmt: skip
    tables.evaluations([row])


def read(folder, table, column):
    paths = manifest.current(folder / table)
    return [value for path in paths for value in pq.read_table(path)[column].to_pylist()]


def stored(folder, table, column):
    return sorted(read(folder, table, column))


@pytest.fixture
def tables(tmp_path):
    """Four steps and the evaluations before them and after two and four, of stage s."""
    made = Tables(tmp_path, "run")
    for step in (1, 2, 3, 4):
        metric(made, step)
    for iteration in (0, 2, 4):
        evaluated(made, iteration)
    return made


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_after_the_checkpoint_are_forgotten_and_those_before_stay(tables, tmp_path, compacted):
    if compacted:
        tables.compact("s")
    tables.metrics("t", [MetricRow(9, 9, "m", 9.0, 0.0)], name="00000008")
    tables.forget("s", 2)
    assert stored(tmp_path, "metrics", "step") == [1, 2, 9]
    assert stored(tmp_path, "evaluations", "iteration") == [0, 2]  # at 2 it came before the save
    for step in (3, 4):
        metric(tables, step)
    tables.compact("s")
    assert stored(tmp_path, "metrics", "step") == [1, 2, 3, 4, 9]
    assert tables.lost == []


@pytest.mark.parametrize("compacted", [False, True])
def test_a_measuring_on_training_tasks_stays_and_training_and_its_judges_go(tmp_path, compacted):
    made = Tables(tmp_path, "run")
    judged = replace(scored(), judgements=(Judgement("exact_match", "openai m", "yes", 1.0),))
    for iteration in (1, 2, 3):
        evaluated(made, iteration, "train")
        for split in ("train", "train-evaluation"):
            made.trajectories([judged], Place("s", iteration, split, "sampled"))
    if compacted:
        made.compact("s")
    made.forget("s", 2)  # two iterations are done: the rows of the third, number 2, come again
    assert stored(tmp_path, "evaluations", "iteration") == [1, 2]
    for table in ("trajectories", "turns", "judgements"):
        rows = zip(*(read(tmp_path, table, name) for name in ("split", "iteration")), strict=True)
        assert set(rows) == {("train", 1), ("train-evaluation", 1), ("train-evaluation", 2)}
    assert made.lost == []


@pytest.mark.parametrize("compacted", [False, True])
def test_a_stage_that_starts_over_forgets_all_of_its_rows(tables, tmp_path, compacted):
    if compacted:
        tables.compact("s")
    tables.forget("s", -1)
    assert stored(tmp_path, "metrics", "step") == []
    assert stored(tmp_path, "evaluations", "iteration") == []


def test_metrics_are_read_back_by_step(tables):
    metric(tables, 1)
    assert [(row.step, row.name, row.value) for row in tables.told("s")] == [
        (step, "m", float(step)) for step in (1, 2, 3, 4)
    ]
    assert tables.told("another") == []


def _hold(folder, ready, done) -> None:
    with held(folder):
        ready.set()
        done.wait(20)


def test_a_second_process_is_refused_and_the_mark_goes_last(tmp_path):
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path, ready, done))
    other.start()
    assert ready.wait(20)
    with pytest.raises(RecipeError, match="another process"), held(tmp_path):
        pass
    assert was_left(tmp_path)
    other.kill()  # the lock ends with the process; the mark stays
    other.join()
    assert was_left(tmp_path)
    with held(tmp_path):
        assert was_left(tmp_path)
    assert not was_left(tmp_path)


def test_an_error_removes_the_mark_that_it_made_and_no_other(tmp_path):
    def broken() -> None:
        with held(tmp_path):
            raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"):
        broken()
    assert not was_left(tmp_path)
    (tmp_path / ".running").touch()
    with pytest.raises(ValueError, match="broken"):
        broken()
    assert was_left(tmp_path)


def test_the_log_has_a_line_for_each_event_and_no_half_ones(tmp_path):
    path = tmp_path / "events.jsonl"
    Events(path).add("stage", name="imitate", iteration=0)
    with path.open("a") as file:
        file.write('{"time": "2026')
    Events(path).add("ended", status="finished")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["event"], line.get("name")) for line in lines] == [
        ("stage", "imitate"),
        ("ended", None),
    ]
    assert all(line["time"].endswith("+00:00") for line in lines)


def test_a_log_that_cannot_be_written_stops_nothing(tmp_path):
    Events(tmp_path / "nowhere" / "events.jsonl").add("ended")
    assert not (tmp_path / "nowhere").exists()
