"""Runs that are interrupted, killed, resumed and kept apart, by the real commands."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small import RECIPE, SMALL, experiment, small
from test_resume import interrupted, same

from agentrecipes.experiment import run

PLACES = {  # what stderr says when the run has come to a place
    "the first evaluation": "imitate: sft",
    "imitation": "imitate 0  dev greedy",
    "the collecting stage": "reinforce 0  dev greedy",
}


def contents(folder: Path) -> dict[Path, tuple[int, bytes]]:
    """Every file with the time it was written at, and its bytes."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
    }


def told(folder: Path) -> dict:
    return json.loads((folder / "summary.json").read_text())


@pytest.mark.parametrize("place", PLACES)
def test_an_interrupted_run_is_saved_and_resuming_it_ends_like_the_whole_run(
    commands, start, resume, whole, place
):
    signals = (signal.SIGINT, signal.SIGTERM)
    running = [start(f"{number.name} in {place}") for number in signals]
    for number, command in zip(signals, running, strict=True):
        command.says(PLACES[place]).signal(number)
    for number, command in zip(signals, running, strict=True):
        folder = commands.folder / "runs" / f"{number.name} in {place}"
        assert command.wait().code == 130
        assert command.json["status"] == "interrupted"
        assert command.json == told(folder)
        assert list((folder / "checkpoints").glob("*.ckpt"))
        assert (folder / "model" / "model.safetensors").is_file()
        assert "Traceback" not in command.err
    for number in signals:
        name = f"{number.name} in {place}"
        again = resume(name)
        assert (again.code, again.json["status"]) == (0, "finished")
        assert again.json["evaluations"] == told(whole)["evaluations"]
        assert [stage["name"] for stage in again.json["stages"]] == ["imitate", "reinforce"]
        same(whole, commands.folder / "runs" / name)


def test_an_extension_that_was_interrupted_is_taken_to_its_end(tmp_path):
    overrides = [
        "stages.imitate.tripwires.dead_type={action: extend, steps: 7, times: 2, tasks: 2}",
        "stages.reinforce.iterations=1",
        "evaluation.every=0",
        "evaluation.tasks=1",
    ]
    uninterrupted = run(experiment(small(*overrides), tmp_path / "whole"))
    folder = tmp_path / "cut"
    assert interrupted(folder, "imitate", 10, *overrides) == "interrupted"  # 6 < 10 < 6 + 7
    again = run(experiment(small(*overrides), folder), resume=True)
    steps = [each["stages"][0]["steps"] for each in (uninterrupted, again)]
    assert steps == [6 + 2 * 7] * 2
    assert again["tripwires"] == uninterrupted["tripwires"]
    same(tmp_path / "whole", folder)


def test_steps_after_a_damaged_checkpoint_are_recorded_once(tmp_path):
    overrides = [
        "stages.imitate.steps=14",
        "stages.reinforce.iterations=1",
        "evaluation.tasks=1",
        "tripwires.dead_type.tasks=2",
    ]
    run(experiment(small(*overrides), tmp_path / "whole"))
    folder = tmp_path / "cut"
    assert interrupted(folder, "imitate", 10, *overrides) == "interrupted"
    newest = max((folder / "checkpoints").glob("*.ckpt"))
    newest.write_bytes(newest.read_bytes()[:-1])
    again = run(experiment(small(*overrides), folder), resume=True)
    assert again["status"] == "finished"
    same(tmp_path / "whole", folder)


LONG = {  # so long that a first Ctrl-C alone would be waited for
    "the first evaluation": ["evaluation.tasks=150", "evaluation.samples=4"],
    "imitation": [
        "stages.imitate.trainer.rows_per_step=800",
        "stages.imitate.demonstrations.count=800",
    ],
    "the collecting stage": ["rollout.tasks=128"],
}


@pytest.mark.parametrize("place", PLACES)
def test_a_second_ctrl_c_ends_the_run_at_once(commands, start, place):
    command = start(f"twice in {place}", *LONG[place]).says(PLACES[place])
    time.sleep(0.2)
    command.signal(signal.SIGINT)
    time.sleep(0.05)
    assert not command.over.is_set()
    command.signal(signal.SIGINT)
    sent = time.monotonic()
    command.wait()
    assert time.monotonic() - sent < 3.0
    assert command.code == 130
    assert command.json["status"] == "interrupted"
    assert "Traceback" not in command.err
    assert command.json == told(commands.folder / "runs" / f"twice in {place}")


@pytest.mark.parametrize("place", ["the first evaluation", "the collecting stage"])
def test_a_run_that_was_killed_goes_on_or_starts_over(commands, start, resume, whole, place):
    name = f"killed in {place}"
    command = start(name).says(PLACES[place])
    command.signal(signal.SIGKILL)
    assert command.wait().code == -signal.SIGKILL
    folder = commands.folder / "runs" / name
    saved = bool(list(folder.glob("checkpoints/*.ckpt")))
    assert saved == (place == "the collecting stage")
    assert not (folder / "summary.json").exists()
    again = resume(name)
    assert (again.code, again.json["status"]) == (0, "finished")
    same(whole, folder)


def test_resuming_a_finished_run_changes_nothing(whole):
    before = contents(whole)
    agentrecipes = Path(sys.executable).parent / "agentrecipes"
    done = subprocess.run(
        [agentrecipes, "run", "--resume", whole, "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == told(whole)
    assert contents(whole) == before


def test_a_folder_that_holds_a_run_is_refused(commands, whole):
    before = contents(whole)
    done = commands.run("run", RECIPE, *SMALL, "--run-dir", whole, "--json")
    assert done.code == 2
    assert [problem["code"] for problem in done.json["problems"]] == ["taken"]
    assert contents(whole) == before


def test_a_checkpoint_of_another_recipe_is_refused_and_nothing_is_changed(commands, resume, whole):
    folder = commands.folder / "runs" / "other seed"
    shutil.copytree(whole, folder)
    (folder / "summary.json").unlink()
    recipe = folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("\nseed: 7\n", "\nseed: 8\n"))
    assert "seed: 8" in recipe.read_text()
    before = contents(folder)
    done = resume("other seed")
    assert done.code == 4
    assert "belongs to another recipe" in done.json["error"]
    assert contents(folder) == before


def test_two_runs_started_in_one_second_have_different_names(commands):
    words = ["run", RECIPE, *SMALL, "stages.imitate.steps=1", "evaluation.tasks=1", "--json"]
    both = [commands.start(*words, "--runs-dir", "pair") for _ in range(2)]
    for command in both:
        command.says("imitate 0  dev greedy").signal(signal.SIGINT)
    names = {command.wait().json["run"] for command in both}
    assert len(names) == 2
    assert {path.name for path in (commands.folder / "pair").iterdir()} == names
