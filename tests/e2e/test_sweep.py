"""Studies by the real command: killed, resumed, pruned, refused."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import time
from pathlib import Path

import pytest

PARTS = Path(__file__).parent / "parts"
SWEEP = """
recipe: tiny.yaml
objective: {metric: spread, seeds: SEEDS}
sampler: {name: random}
trials: TRIALS
space:
  optimizer.learning_rate: {float: [1e-4, 1e-2], log: true}
  algorithm.name: {choice: [reinforce, rloo]}
"""
RECIPE = """
name: tiny
seed: 7
model: {name: tiny, layers: 1}
environment:
  name: search
  dataset: {name: world, chains: [1]}
  retriever: {name: bm25, top_k: 2}
  protocol: search_tags
rewards: [spread]
algorithm: reinforce
iterations: 3
rollout: {tasks: 2, group_size: 2, tokens: 128, tokens_per_turn: 16}
optimizer: {learning_rate: 1e-3}
trainer: {checkpoint_every: 1}
evaluation: {every: 1, tasks: 2, modes: [sampled], metrics: [spread]}
tracking: {backend: none}
"""


def study(folder: Path, *, trials: int = 3, seeds: int = 1, **more: str) -> Path:
    """A sweep file and its recipe in `folder`, which runs in seconds."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tiny.yaml").write_text(RECIPE)
    text = SWEEP.replace("TRIALS", str(trials)).replace("SEEDS", str(seeds))
    path = folder / "study.yaml"
    path.write_text(text + "".join(f"{key}: {value}\n" for key, value in more.items()))
    return path


def words(folder: Path, *more: object) -> list[object]:
    given = ["--runs-dir", folder / "runs", "--parts", PARTS, "--json", *more]
    return ["sweep", folder / "study.yaml", *given]


def states(folder: Path) -> list[tuple[int, str]]:
    """Number and state of every trial, read from the database itself."""
    path = folder / "runs" / "sweeps.db"
    if not path.exists():
        return []
    with sqlite3.connect(path, timeout=30) as connection:
        try:
            return connection.execute("select number, state from trials order by 1").fetchall()
        except sqlite3.OperationalError:  # the tables are being made
            return []


def ended(folder: Path) -> int:
    return sum(state == "COMPLETE" for _, state in states(folder))


def summaries(folder: Path) -> dict[str, bytes]:
    found = (folder / "runs").glob("*/summary.json")
    return {path.parent.name: path.read_bytes() for path in found}


def test_a_study_that_was_killed_goes_on_and_runs_no_trial_twice(commands, tmp_path):
    study(tmp_path, trials=6, seeds=1)
    command = commands.start(*words(tmp_path, "--workers", 2))
    command.until(lambda: ended(tmp_path) >= 2)
    command.signal(signal.SIGKILL)
    command.over.wait(60)
    before = {name: data for name, data in summaries(tmp_path).items() if b'"finished"' in data}
    assert len(before) >= 2
    again = commands.run(*words(tmp_path, "--workers", 2))
    assert again.code == 0, again.err
    assert again.json["study"] == "study"
    assert (again.json["trials"], again.json["finished"]) == (6, 6)
    assert states(tmp_path) == [(number, "COMPLETE") for number in range(6)]
    after = summaries(tmp_path)
    assert len(after) == 6
    assert {name: after[name] for name in before} == before  # written once, by the first sweep
    told = [json.loads(data) for data in after.values()]
    assert {(each["status"], len(each["evaluations"])) for each in told} == {("finished", 5)}
    best = max(again.json["table"], key=lambda row: row["value"])
    assert again.json["best"]["value"] == best["value"]
    assert again.json["best"]["run"] in after
    assert set(again.json["best"]["params"]) == {"optimizer.learning_rate", "algorithm.name"}
    done = commands.run(*words(tmp_path))  # nothing is left to do
    assert (done.code, done.json["trials"]) == (0, 6)
    assert summaries(tmp_path) == after


def test_a_worker_that_is_killed_is_replaced_and_its_trial_goes_on(commands, tmp_path):
    study(tmp_path, trials=1, seeds=2)
    command = commands.start(*words(tmp_path))
    command.until(lambda: any((tmp_path / "runs").glob("study-*/checkpoints/*.json")))
    [worker] = children(command.pid)
    os.kill(worker, signal.SIGKILL)
    assert command.wait().code == 0, command.err
    assert "its process was killed by signal 9; trying again" in command.err
    assert command.json["table"][0]["tries"] == 1
    assert command.json["finished"] == 1
    values = [last(path) for path in sorted((tmp_path / "runs").glob("study-*/summary.json"))]
    assert command.json["best"]["value"] == pytest.approx(sum(values) / 2, abs=1e-12)
    assert values[0] != values[1]


def last(path: Path) -> float:
    rows = [row for row in json.loads(path.read_text())["evaluations"] if row["split"] == "dev"]
    return rows[-1]["value"]


def children(pid: int) -> list[int]:
    """Processes whose parent is `pid` and that are workers."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text().rpartition(")")[2].split()
            line = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if stat[1] == str(pid) and b"agentrecipes.sweeps.worker" in line:
            found.append(int(entry.name))
    return found


def test_ctrl_c_saves_what_is_under_way_and_the_study_goes_on(commands, tmp_path):
    study(tmp_path, trials=2)
    command = commands.start(*words(tmp_path, "iterations=40"))
    command.until(lambda: any((tmp_path / "runs").glob("study-*/checkpoints/*.json")))
    command.signal(signal.SIGINT)
    assert command.wait().code == 130, command.err
    assert command.json["status"] == "interrupted"
    assert command.json["running"] == 1
    [folder] = (tmp_path / "runs").glob("study-*")
    assert json.loads((folder / "summary.json").read_text())["status"] == "interrupted"
    time.sleep(0.1)
    refused = commands.run(*words(tmp_path))
    assert refused.code == 2
    assert "iterations: was 40, and is 3" in refused.err.replace("stages.reinforce.", "")


def test_a_database_that_goes_away_is_named_and_nothing_is_lost(commands, tmp_path):
    study(tmp_path, trials=3)
    command = commands.start(*words(tmp_path))
    command.until(lambda: ended(tmp_path) == 1)
    database = tmp_path / "runs" / "sweeps.db"
    database.rename(tmp_path / "kept.db")
    assert command.wait().code == 1
    assert "sweeps.db: the file was removed or replaced during the sweep" in command.err
    before = summaries(tmp_path)
    (tmp_path / "kept.db").rename(database)
    again = commands.run(*words(tmp_path))
    assert (again.code, again.json["finished"]) == (0, 3), again.err
    assert states(tmp_path) == [(number, "COMPLETE") for number in range(3)]
    assert before.items() <= {**summaries(tmp_path), **before}.items()


def test_a_trial_that_lies_too_low_is_ended_early(commands, tmp_path):
    study(tmp_path, trials=4, pruner="{name: median, startup: 1, warmup: 0}")
    done = commands.run(*words(tmp_path))
    assert done.code == 0, done.err
    table = done.json["table"]
    for row in table:
        if row["state"] == "pruned":
            [run] = row["runs"]
            told = json.loads((tmp_path / "runs" / run / "summary.json").read_text())
            assert told["status"] == "stopped"
            assert len(row["curve"]) < 4
    assert done.json["pruned"] >= 1
    assert done.json["best"]["value"] == max(r["value"] for r in table if r["state"] == "finished")
