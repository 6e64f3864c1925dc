"""A run that is killed somewhere and resumed leaves what an undisturbed run leaves, bit for bit.

`make kill-test` kills at twenty random places more.
"""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from commands import Commands
from compare_runs import first_difference, unequal
from kill import killed, resume, start
from torch import tensor

SHORT = ["stages.imitate.steps=6", "stages.reinforce.iterations=3", "evaluation.tasks=2"]
POINTS = {
    "before the run has its recipe": {"rename": "*/recipe.yaml"},
    "before the recipe has its lock": {"rename": "*/recipe.lock"},
    "while it imitates": {"call": "agentrecipes.training.module:PolicyModule.backward", "nth": 5},
    "between stages, while files are removed": {"remove": "*/metrics/imitate*", "nth": 2},
    "while the weights go to the engine": {"call": "agentrecipes.training.stage:weights", "nth": 3},
    "while it collects": {"call": "agentrecipes.training.groups:score", "nth": 3},
    "while a table is written": {"rename": "*/turns/reinforce*train*", "nth": 3},
    "after an evaluation": {"return": "agentrecipes.experiment:evaluate", "nth": 3},
    "before a checkpoint has its hash": {"rename": "*/checkpoints/01-*.json"},
    "while the model is put in place": {"rename": "*/model"},
    "before there is a report": {"rename": "*/report.html"},
}


@pytest.fixture(scope="module")
def undisturbed(commands: Commands) -> Path:
    done = start(commands, "undisturbed", *SHORT, kill={})
    assert done.code == 0, done.err
    return commands.folder / "runs" / "undisturbed"


@pytest.mark.parametrize("point", POINTS)
def test_a_run_killed_anywhere_and_resumed_is_the_undisturbed_run(commands, undisturbed, point):
    done = killed(commands, f"killed {point}", *SHORT, kill=POINTS[point])
    assert done.code == 0, done.err
    assert done.json["status"] == "finished"
    folder = commands.folder / "runs" / f"killed {point}"
    assert first_difference(undisturbed, folder) is None
    assert (folder / "report.html").is_file()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_who_takes_the_machine_away_finds_the_run_saved(commands, undisturbed, number):
    name = f"preempted by {number.name}"
    folder = commands.folder / "runs" / name
    command = commands.start("run", *start_words(folder), kill={"folder": str(folder)}).says(
        "reinforce: ppo"
    )
    command.signal(number)
    assert command.wait().code == 130
    newest = max((folder / "checkpoints").glob("*.json")).stem
    assert newest.startswith("01-")  # where it was, and not only where the last stage ended
    events = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [each["event"] for each in events][-2:] == ["checkpoint", "ended"]
    assert resume(commands, name).code == 0
    assert first_difference(undisturbed, folder) is None


def start_words(folder: Path) -> tuple[object, ...]:
    from kill import PARTS, RECIPE

    return (RECIPE, *SHORT, "--run-dir", folder, *PARTS, "--json")


def test_a_run_that_somebody_works_on_is_refused(commands):
    folder = commands.folder / "runs" / "two hands"
    command = commands.start("run", *start_words(folder)).says("imitate: sft")
    second = resume(commands, "two hands")
    assert second.code == 2
    assert second.json["problems"][0]["code"] == "running"
    command.signal(signal.SIGKILL)
    command.wait()
    assert resume(commands, "two hands").code == 0  # the lock went with its process


def test_half_a_line_of_the_log_is_dropped_before_the_next(commands, undisturbed):
    name = "half a line"
    folder = commands.folder / "runs" / name
    command = commands.start("run", *start_words(folder)).says("reinforce: ppo")
    command.signal(signal.SIGKILL)
    command.wait()
    with (folder / "events.jsonl").open("a") as file:
        file.write('{"time": "20')
    assert resume(commands, name).code == 0
    lines = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines if line["event"] in ("resumed", "ended")] == [
        "resumed",
        "ended",
    ]


def test_inputs_that_changed_meanwhile_are_named(commands, undisturbed):
    name = "other inputs"
    folder = commands.folder / "runs" / name
    command = commands.start("run", *start_words(folder)).says("imitate: sft")
    command.signal(signal.SIGKILL)
    command.wait()
    lock = json.loads((folder / "recipe.lock").read_text())
    lock["inputs"]["package torch"] = "1.0"
    (folder / "recipe.lock").write_text(json.dumps(lock))
    done = resume(commands, name)
    assert done.code == 0
    assert "package torch is not what the run began with" in done.err


def test_the_comparison_names_the_first_difference():
    one = {"a": [1, {"b": tensor([1.0, 2.0])}], "seconds": 3}
    other = {"a": [1, {"b": tensor([1.0, 2.5])}, 4], "seconds": 5}
    assert list(unequal(one, other, "x")) == ["x.a[1].b: 1 of 2 numbers differ", "x.a: 2 against 3"]
    assert list(unequal(one, dict(one), "x")) == []
    assert list(unequal({"c": float("nan")}, {"c": float("nan")}, "x")) == []
