"""``export`` writes a run's model somewhere else, and never over something."""

from __future__ import annotations

import json
from pathlib import Path

import pytest


@pytest.fixture
def run():
    """Make a run's folder with a model's files in it."""

    def made() -> Path:
        folder = Path("runs") / "demo-1"
        (folder / "model").mkdir(parents=True)
        (folder / "recipe.yaml").write_text("name: demo\n")
        (folder / "model" / "config.json").write_text("{}")
        (folder / "model" / "model.safetensors").write_bytes(b"12345678")
        return folder

    return made


def test_the_model_is_copied_and_its_bytes_are_told(command, run):
    run()
    done = command("export", "demo-1", "out/agent", "--json")
    assert json.loads(done.out) == {"dir": "out/agent", "bytes": 2 + 8}
    assert Path("out/agent/model.safetensors").read_bytes() == b"12345678"


def test_merging_without_an_adapter_says_that_there_is_none(command, run):
    run()
    done = command("export", "demo-1", "agent", "--merge")
    assert (done.code, done.out) == (0, "agent: 0.0 MiB\n")
    assert "no adapter to merge" in done.err


def test_a_folder_that_holds_something_is_left_alone(command, run):
    run()
    Path("agent").mkdir()
    Path("agent/notes.txt").write_text("mine")
    done = command("export", "demo-1", "agent")
    assert done.code == 2
    assert "'agent' holds something. Name a new folder." in done.err
    assert [file.name for file in Path("agent").iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_filled(command, run):
    run()
    Path("agent").mkdir()
    assert command("export", "demo-1", "agent").code == 0
    assert Path("agent/config.json").is_file()


def test_a_run_without_a_model_is_told_how_to_get_one(command, run):
    folder = run()
    for file in (folder / "model").iterdir():
        file.unlink()
    (folder / "model").rmdir()
    done = command("export", "demo-1", "agent")
    assert done.code == 2
    assert "agentrecipes run --resume runs/demo-1" in done.err


def test_a_place_that_cannot_be_written_is_one_line(command, run):
    run()
    Path("file").touch()
    done = command("export", "demo-1", "file/agent")
    assert done.code == 1
    assert done.err.startswith("error: file/agent: cannot be written: ")
    assert len(done.err.splitlines()) == 1
