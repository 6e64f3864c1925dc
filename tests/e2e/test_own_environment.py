"""The page on environments of one's own: short enough, played by commands, and conforming."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Commands

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "own-environment.md"
BLOCKS = dict(re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
LINES = BLOCKS["sh"].splitlines()
SMALL = ["stages.imitate.steps=2", "stages.imitate.demonstrations.count=8"]
SMALL += ["stages.reinforce.iterations=1", "rollout.tasks=1", "rollout.group_size=2"]
SMALL += ["model={name: tiny, layers: 1}", "evaluation.tasks=1", "tracking.backend=none"]


@pytest.fixture(scope="module")
def world(commands: Commands) -> Path:
    """The page's three files, where commands start."""
    folder = commands.folder
    (folder / "worlds").mkdir(exist_ok=True)
    (folder / "worlds" / "guess.py").write_text(BLOCKS["python"], encoding="utf-8")
    (folder / "guess.yaml").write_text(BLOCKS["yaml"], encoding="utf-8")
    (folder / "test_guess.py").write_text(BLOCKS["py"], encoding="utf-8")
    return folder


def test_a_whole_environment_has_fewer_than_eighty_lines():
    lines = BLOCKS["python"].splitlines()
    assert len(lines) < 80
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_runs(commands: Commands, world: Path, line: str):
    done = commands.run(*shlex.split(line)[1:])
    assert done.code == 0, done.err


def test_the_oracle_wins_as_the_page_shows_and_a_random_agent_does_not(
    commands: Commands, world: Path
):
    _, oracle, random = (shlex.split(line)[1:] for line in LINES)
    assert BLOCKS[""] in commands.run(*oracle).out
    assert commands.run(*oracle, "--json").json["mean_total"] == 1.0
    assert commands.run(*random, "--json").json["mean_total"] < 0.3


def test_the_recipe_of_the_page_trains_a_small_model(commands: Commands, world: Path):
    words = ["run", "guess.yaml", "--parts", "worlds", *SMALL]
    done = commands.run(*words, "--run-dir", world / "runs" / "guess", "--json")
    assert done.code == 0, done.err
    assert done.json["status"] == "finished"


def test_the_suite_of_the_page_passes(world: Path):
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_guess.py"]
    done = subprocess.run(command, cwd=world, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "5 passed" in done.stdout
