"""A stage that was run already is not run again, and nothing else tells the difference."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import pytest
from small import RECIPE, SMALL, small
from test_resume import rows, same

from agentrecipes.compile import RunPlace, compile_recipe
from agentrecipes.experiment import run
from agentrecipes.training.reuse import Stages

PARTS = Path(__file__).parent / "parts"
CRITIC = "stages.reinforce.optimizer.value_learning_rate=7e-3"  # of the second stage alone
FEW = [
    "rewards=[spread]",
    "evaluation.tasks=2",
    "evaluation.every=0",
    "stages.reinforce.iterations=2",
    "tripwires.dead_type.tasks=2",
]


def reusing(folder: Path, *overrides: str) -> dict:
    """The summary of a small run in `folder` that reuses what it can and keeps its stages."""
    recipe = small(*FEW, *overrides)
    stages = Stages(folder.parent, recipe, folder)
    taken = stages.take()
    place = RunPlace(folder.parent, folder, stages=stages)
    return run(compile_recipe(recipe, place), resume=taken is not None)


def test_a_run_that_reuses_a_stage_equals_one_that_runs_it(tmp_path):
    recipe = small(*FEW, CRITIC)
    whole = run(compile_recipe(recipe, RunPlace(tmp_path, tmp_path / "whole")))
    donor = reusing(tmp_path / "donor")
    assert donor["reused"] == whole["reused"] == []
    again = reusing(tmp_path / "again", CRITIC)
    assert again["reused"] == [{"stage": "imitate", "run": "donor"}]
    same(tmp_path / "whole", tmp_path / "again")
    assert again["evaluations"] == whole["evaluations"]
    assert [stage["steps"] for stage in again["stages"]] == [6, 2]
    assert rows(tmp_path / "again", "metrics") != rows(tmp_path / "donor", "metrics")
    kept = next((tmp_path / "stages").glob("*/*.ckpt"))  # half of it was lost on the disk
    kept.write_bytes(kept.read_bytes()[:-1])
    third = reusing(tmp_path / "third", CRITIC)
    assert third["reused"] == []
    same(tmp_path / "whole", tmp_path / "third")


@pytest.mark.parametrize(
    ("override", "equal"),
    [
        ("seed=8", False),
        ("model.layers=2", False),
        ("stages.imitate.steps=7", False),
        ("stages.imitate.optimizer.learning_rate=2e-3", False),
        ("stages.imitate.evaluation.tasks=3", False),  # its rows are in the tables
        ("stages.reinforce.iterations=9", True),
        ("tracking.traces=1", True),
        ("name=other", True),
    ],
)
def test_a_stage_is_known_by_all_that_it_depends_on(tmp_path, override, equal):
    one, other = (Stages(tmp_path, small(*words), tmp_path / "a") for words in ((), (override,)))
    assert (one.key(0) == other.key(0)) is equal


def test_another_machine_package_or_file_makes_another_stage(tmp_path, monkeypatch):
    stages = Stages(tmp_path, small(), tmp_path / "a")
    before = stages.key(0)
    assert stages.key(0) == before
    moved = replace(stages.recipe, data={**stages.recipe.data, "model": {"name": "other"}})
    assert Stages(tmp_path, moved, tmp_path / "a").key(0) != before
    assert stages.key(1) != before


def test_who_needs_a_stage_waits_for_whoever_is_busy_with_it(tmp_path):
    recipe = small(*FEW)
    first = Stages(tmp_path, recipe, tmp_path / "first")
    assert first.take() is None
    place = RunPlace(tmp_path, tmp_path / "first", stages=first)
    taken: list[str | None] = []
    second = Stages(tmp_path, recipe, tmp_path / "second")
    waiting = threading.Thread(target=lambda: taken.append(second.take()))
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    run(compile_recipe(recipe, place))
    waiting.join(30)
    assert taken == ["imitate"]


def test_who_is_asked_to_stop_waits_no_longer(tmp_path):
    first = Stages(tmp_path, small(), tmp_path / "first")
    assert first.take() is None
    assert Stages(tmp_path, small(), tmp_path / "b", stopping=lambda: True).take() is None
    first.release()


def test_the_command_says_what_it_reused(commands):
    words = ["run", RECIPE, *SMALL, *FEW, "--reuse"]
    words += ["--parts", PARTS, "--runs-dir", commands.folder / "reused"]
    first, second = commands.run(*words), commands.run(*words)
    assert (first.code, second.code) == (0, 0), second.err
    assert "stages up to 'imitate' were run already" in second.err
    assert "reused  imitate of rag_r1-" in second.out
    assert "reused  " not in first.out
    assert commands.run("run", "--resume", "x", "--reuse").code == 2
