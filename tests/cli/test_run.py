"""What `run` and `eval` refuse and leave alone; that a run learns is tested end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.snapshot import check_snapshot, settled
from tests.cli.test_recipes import SMALL

from agentrecipes.cli.run import differences


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


def test_what_differs_from_a_lock_is_named_with_both_values():
    wanted = {"packages": {"torch": "2.13.0", "gone": "1"}, "seed": 3}
    found = {"packages": {"torch": "2.13.1", "new": "2"}, "seed": 3}
    assert differences(wanted, found) == [
        "packages.torch is '2.13.1', but '2.13.0' was locked",
        "packages.gone is None, but '1' was locked",
        "packages.new is '2', but None was locked",
    ]
    assert differences(wanted, wanted) == []


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
