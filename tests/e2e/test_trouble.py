"""Runs that meet trouble: a full disk, a store that vanishes, a part that breaks, no signal."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pyarrow.parquet as pq
import pytest

KEYS = {  # of the summary; DESIGN's, and what went wrong
    "run": str,
    "dir": str,
    "status": str,
    "recipe_hash": str,
    "seed": int,
    "profile": type(None),
    "wall_seconds": float,
    "stages": list,
    "evaluations": list,
    "artifacts": dict,
    "tripwires": list,
    "lost": list,
    "reused": list,
}
EVALUATION = {
    "stage": str,
    "iteration": int,
    "split": str,
    "mode": str,
    "metric": str,
    "value": float,
    "tasks": int,
    "standard_error": float,
    "by": dict,
    "rounds_mean": float,
}
STAGE = {"name": str, "algorithm": str, "steps": int, "iterations": int, "wall_seconds": float}
SMALL_DISK = "150k"  # enough for some tables, not for a checkpoint of a megabyte
SMALL_FILE = 40_000  # bytes: every table fits, no model does
QUICK = ["stages.imitate.steps=2", "evaluation.tasks=2"]


def kinds(values: dict) -> dict[str, type]:
    return {key: type(value) for key, value in values.items()}


def status_in_mlflow(database: Path, run: str) -> str:
    """MLflow's own word for how a run ended."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        found = connection.execute("SELECT status FROM runs WHERE name = ?", [run]).fetchall()
    [(status,)] = found
    return status


def count(database: Path, table: str) -> int:
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        [(rows,)] = connection.execute(f"SELECT count(*) FROM {table}")
    return int(rows)


def test_the_summary_has_the_keys_that_others_rely_on(whole):
    told = json.loads((whole / "summary.json").read_text())
    assert kinds(told) == KEYS
    assert all(kinds(row) == EVALUATION for row in told["evaluations"])
    assert all(kinds(stage) == STAGE for stage in told["stages"])
    assert {"model", "report", "mlflow_run_id"} == set(told["artifacts"])
    assert told["lost"] == []
    last = [(row["split"], row["mode"]) for row in told["evaluations"]][-4:]
    modes = ("sampled", "greedy")
    assert last == [(split, mode) for split in ("dev", "test") for mode in modes]
    assert [(s["name"], s["algorithm"], s["steps"], s["iterations"]) for s in told["stages"]] == [
        ("imitate", "sft", 12, 0),
        ("reinforce", "ppo", 3, 3),
    ]


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A folder on a disk of its own that is soon full."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "tmpfs", folder]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk can be mounted by root alone")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_a_full_disk_ends_the_tables_and_not_the_training(start, small_disk):
    done = start("full", "--run-dir", small_disk / "run").wait()
    assert done.code == 0, done.err
    told = done.json
    assert (told["status"], told["stages"][1]["iterations"]) == ("finished", 3)
    lost = "\n".join(told["lost"])
    for what in ("checkpoint 0-4", "turns/reinforce", "model", "summary.json"):
        assert what in lost
    assert "No space left on device" in lost
    assert (small_disk / "run" / "recipe.yaml").is_file()
    tables = list((small_disk / "run" / "tables" / "trajectories").glob("*.parquet"))
    assert sum(pq.read_table(path).num_rows for path in tables) > 0
    assert not list(small_disk.rglob(".*.tmp"))  # halves of files would keep the disk full


def test_a_model_that_cannot_be_written_is_lost_and_nothing_else_is(start, commands):
    done = start("limited", *QUICK, file_bytes=SMALL_FILE).wait()
    assert (done.code, done.json["status"]) == (0, "finished")
    lost = done.json["lost"]
    assert [line.split(":")[0] for line in lost] == [
        "checkpoint 0-2",
        "checkpoint 1-1",
        "checkpoint 1-2",
        "checkpoint 1-3",
        "model",
        "report.html",
    ]
    folder = commands.folder / "runs" / "limited"
    assert json.loads((folder / "summary.json").read_text())["lost"] == lost
    assert done.json["artifacts"]["model"] is None
    assert not list(folder.rglob(".*.tmp"))
    assert not (folder / ".model.tmp").exists()


def test_a_reference_that_cannot_be_written_does_not_stop_the_run(start):
    kl = "stages.reinforce.algorithm={name: grpo, kl: {place: loss, coefficient: 0.1}}"
    one = "stages.reinforce.iterations=1"
    done = start("no reference", *QUICK, kl, one, file_bytes=SMALL_FILE).wait()
    assert (done.code, done.json["status"]) == (0, "finished")
    assert any(line.startswith("reference-1.pt: not written") for line in done.json["lost"])


def test_a_store_that_is_removed_is_told_and_training_goes_on(start, commands, whole):
    runs = commands.folder / "removed"
    runs.mkdir()  # with a store that is made already: that takes time
    database = runs / "mlflow.db"
    database.write_bytes((whole.parent / "mlflow.db").read_bytes())
    before = count(database, "trace_info")
    command = start(
        "store removed",
        *QUICK,
        "tracking.backend=mlflow",
        "stages.reinforce.iterations=400",
        "stages.reinforce.trainer.checkpoint_every=100",
        *("--runs-dir", runs),
    )

    command.until(lambda: count(database, "trace_info") > before)
    database.unlink()
    seen = command.err.count("dev greedy")
    command.until(lambda: command.err.count("dev greedy") >= seen + 2)
    command.signal(15)
    assert command.wait().code == 130
    lost = command.json["lost"]
    assert lost
    assert all(line.startswith("mlflow: ") for line in lost)
    assert any("was removed or replaced" in line for line in lost)
    assert command.json["artifacts"]["model"] is not None


def test_a_part_that_breaks_fails_the_run_and_mlflow_says_so(start, commands, whole):
    done = start("broken", *QUICK, "rewards=[fragile]", "tracking.backend=mlflow").wait()
    told = done.json
    assert (done.code, told["status"]) == (1, "failed")
    assert "Traceback" in done.err
    assert "ValueError: the part broke on train-" in done.err
    assert kinds(told) == KEYS
    folder = commands.folder / "runs" / "broken"
    assert json.loads((folder / "summary.json").read_text()) == told
    assert [stage["name"] for stage in told["stages"]] == ["imitate"]
    assert status_in_mlflow(whole.parent / "mlflow.db", "broken") == "FAILED"


def test_an_interrupted_run_is_marked_in_mlflow_and_goes_on_as_the_same_run(start, resume, whole):
    database = whole.parent / "mlflow.db"
    command = start("marked", *QUICK, "tracking.backend=mlflow")
    command.says("reinforce 0  dev greedy").signal(15)
    assert command.wait().code == 130
    assert status_in_mlflow(database, "marked") == "KILLED"
    again = resume("marked")
    assert again.json["status"] == "finished"
    assert again.json["artifacts"]["mlflow_run_id"] == command.json["artifacts"]["mlflow_run_id"]
    assert status_in_mlflow(database, "marked") == "FINISHED"
    assert status_in_mlflow(database, "whole") == "FINISHED"


def test_a_run_whose_score_is_too_low_for_rl_stops_and_says_why(start, resume):
    done = start("hopeless", *QUICK, "tripwires.no_signal.action=stop").wait()
    told = done.json
    assert (done.code, told["status"]) == (1, "stopped")
    assert "tripwires.no_signal: the sampled score before stage 'reinforce' is 0.000" in done.err
    assert "Traceback" not in done.err
    assert told["tripwires"][-1]["action"] == "stop"
    assert told["tripwires"][-1]["evidence"] == {"score": 0.0}
    assert [stage["name"] for stage in told["stages"]] == ["imitate"]
    assert told["artifacts"]["model"] is not None
    again = resume("hopeless")  # nothing has changed: it stops again, and tells it once
    assert (again.code, again.json["status"]) == (1, "stopped")
    for key in ("stages", "evaluations", "tripwires"):
        assert len(again.json[key]) == len(told[key])
