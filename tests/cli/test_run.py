"""What `run` and `eval` refuse and leave alone; that a run learns is tested end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.snapshot import check_snapshot, settled
from tests.cli.test_recipe_commands import SMALL

from agentrecipes.cli.run import compare_lock, recipe_of
from agentrecipes.components import added_files
from agentrecipes.recipe.load import load
from agentrecipes.recipe.lock import lock


@pytest.fixture
def small(command):
    """A valid recipe in the folder where commands run."""
    Path("small.yaml").write_text(SMALL)
    return Path("small.yaml")


def made_run(name, **summary: object) -> Path:
    """The folder of a run, as far as commands look at it before they start."""
    folder = Path("runs") / name
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text("name: small\n")
    if summary:
        (folder / "summary.json").write_text(json.dumps(summary))
    return folder


FINISHED = {
    "run": "small-1",
    "dir": "runs/small-1",
    "status": "finished",
    "wall_seconds": 3.0,
    "evaluations": [],
    "artifacts": {},
}


def test_a_folder_that_holds_a_run_is_refused(command, small, tmp_path):
    folder = made_run("small-1")
    done = command("run", small, "--run-dir", folder)
    assert (done.code, done.out) == (2, "")
    check_snapshot("run_taken", settled(done.err, tmp_path))
    assert [path.name for path in folder.iterdir()] == ["recipe.yaml"]


def test_a_finished_run_is_left_as_it_is(command):
    folder = made_run("small-1", **FINISHED)
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    by_name = command("run", "--resume", "small-1", "--json")
    by_folder = command("run", "--resume", folder, "--json")
    assert by_name.code == by_folder.code == 0
    assert json.loads(by_name.out) == json.loads(by_folder.out) == FINISHED
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


def test_resume_takes_no_recipe_and_needs_a_run(command, small, tmp_path):
    both = command("run", small, "--resume", "small-1")
    assert (both.code, both.out) == (2, "")
    assert "takes no recipe" in both.err
    none = command("run", "--resume", "small-1")
    assert none.code == 2
    check_snapshot("run_no_such_run", settled(none.err, tmp_path))


def test_a_recipe_that_is_not_there_stops_the_command(command, small, tmp_path):
    Path("recipes").mkdir()
    Path("recipes/ledger.yaml").write_text("name: ledger\n")
    done = command("run", "recipes/legder.yaml", "--json")
    assert done.code == 2
    assert json.loads(done.out)["problems"][0]["code"] == "missing_file"
    check_snapshot("run_no_such_recipe", settled(done.err, tmp_path))
    assert command("run").code == 2


def test_a_wrong_recipe_writes_nothing(command, small):
    done = command("run", small, "rollout.task=3", "--json")
    assert (done.code, json.loads(done.out)["ok"]) == (2, False)
    assert not Path("runs").exists()


def test_a_lock_that_is_not_there_stops_the_command(command, small):
    done = command("run", small, "--locked", "nowhere.lock")
    assert (done.code, done.out) == (2, "")
    assert "no lock file 'nowhere.lock'" in done.err


def test_what_differs_from_a_lock_is_named_with_both_values(command, small, tmp_path):
    locked = lock(load(small), extra_files=added_files())
    Path("same.lock").write_text(json.dumps(locked))
    compare_lock(load(small), Path("same.lock"))
    locked["inputs"] |= {"package numpy": "0.1", "file gone.jsonl": "abc"}
    Path("other.lock").write_text(json.dumps(locked))
    done = command("run", small, "--locked", "other.lock")
    assert (done.code, done.out) == (4, "")
    assert "'0.1' was locked" in done.err
    assert "file gone.jsonl is None, but 'abc' was locked" in done.err
    assert not Path("runs").exists()


def test_a_run_s_recipe_is_the_one_it_was_started_with(command, small):
    folder = made_run("small-1")
    started = load(small, profile="short")
    (folder / "recipe.yaml").write_text(started.to_yaml())
    (folder / "recipe.lock").write_text(json.dumps(lock(started)))
    again = recipe_of(folder)
    assert (again, again.hash, again.profile) == (started, started.hash, "short")
    assert again.origin == started.origin  # who wrote each value, not lines of the run's own file
    assert again.folder == started.folder  # where relative paths start, not the run's own folder


@pytest.mark.slow
def test_a_small_run_ends_with_its_summary_and_nothing_else_on_stdout(command, small):
    small.write_text(SMALL.replace("iterations: 2", "iterations: 2\nevaluation: {tasks: 2}"))
    done = command("run", small, "--run-dir", "runs/here", "--json")
    told = json.loads(done.out)
    assert done.code == 0
    assert told == json.loads(Path("runs/here/summary.json").read_text())
    assert set(told) >= {"run", "dir", "status", "recipe_hash", "seed", "profile"}
    assert set(told) >= {"wall_seconds", "stages", "evaluations", "artifacts"}
    assert (told["status"], told["seed"], told["run"]) == ("finished", 3, "here")
    assert told["recipe_hash"] == json.loads(command("check", small, "--json").out)["recipe_hash"]
    assert {row["split"] for row in told["evaluations"]} == {"dev", "test"}
    assert "grpo: grpo, 2 to do" in done.err
    assert command("run", small, "--run-dir", "runs/here").code == 2
    again = command("run", "--resume", "here")
    assert again.code == 0
    assert again.out.splitlines()[-1].startswith("here: finished in ")
    assert json.loads(command("runs", "--format", "json").out)[0]["run"] == "here"
    measured = command(
        "eval", "here", "--split", "test", "--tasks", "2", "--mode", "greedy", "--json"
    )
    [row] = json.loads(measured.out)["evaluations"]
    last = [one for one in told["evaluations"] if (one["split"], one["mode"]) == ("test", "greedy")]
    assert measured.code == 0
    assert set(row) == set(last[-1])
    assert (row["value"], row["tasks"]) == (
        last[-1]["value"],
        2,
    )  # the saved model is the trained one


def test_a_run_without_a_model_cannot_be_evaluated(command):
    made_run("small-1")
    done = command("eval", "small-1")
    assert (done.code, done.out) == (2, "")
    assert "has no model yet" in done.err


def test_a_run_has_no_profiles(command):
    made_run("small-1")
    done = command("eval", "small-1", "--profile", "paper")
    assert (done.code, done.out) == (2, "")
    assert "no profiles any more" in done.err
