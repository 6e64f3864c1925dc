"""The README: its commands run, its YAML is the recipe's, its example part is one."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from commands import Commands
from omegaconf import OmegaConf
from small import SMALL

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
CELLS = re.findall(r"^\| `([^|`]+)` \|", README, re.MULTILINE)
INLINE = re.findall(r"`(agentrecipes [^`\n]+)`", README)


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


LINES = [line.partition("#")[0].strip() for block in blocks("sh") for line in block.splitlines()]
WRITTEN = sorted({*LINES, *CELLS, *INLINE} - {""})
OURS = [
    line
    for line in WRITTEN
    if line.startswith("agentrecipes ") and "<" not in line and line != "agentrecipes ui"
]  # `ui` runs until Ctrl-C, in tests/tracking


@pytest.fixture(scope="module")
def visitor(commands: Commands, whole: Path) -> Path:
    """A folder with the project's recipes and the runs of somebody who has already run one."""
    for name in ("recipes", "sweeps"):
        shutil.copytree(ROOT / name, commands.folder / name, dirs_exist_ok=True)
    return commands.folder


def test_the_readme_has_commands_of_each_form():
    assert len(OURS) >= 10
    assert {"make run", "make test", "make smol"} <= set(WRITTEN)


@pytest.mark.parametrize("line", OURS)
def test_a_command_of_the_readme_runs(commands: Commands, visitor: Path, line: str):
    words = shlex.split(line)[1:]
    if words[0] == "run":
        name = re.sub(r"\W+", "-", line)
        words += [*SMALL, "--run-dir", str(visitor / "runs" / name)]
    if words[0] == "sweep":
        words += ["--check"]  # its trials take an hour
    done = commands.run(*words)
    assert done.code == 0, done.err
    assert done.out or done.err


def test_the_command_that_goes_on_with_a_run_goes_on_with_it(commands: Commands, visitor: Path):
    [line] = [each for each in INLINE if "--resume" in each]
    words = shlex.split(line.replace("runs/<run>", "runs/whole"))[1:]
    done = commands.run(*words, "--parts", Path(__file__).parent / "parts")
    assert done.code == 0, done.err


@pytest.mark.parametrize("line", [each for each in CELLS if "runs/<run>" in each])
def test_a_command_of_the_readme_reads_a_finished_run(commands: Commands, visitor: Path, line: str):
    words = shlex.split(re.sub("<run>|<other>", "whole", line))[1:]
    parts = [] if words[0] in ("diff", "export") else ["--parts", Path(__file__).parent / "parts"]
    done = commands.run(*words, *parts)
    assert done.code == 0, done.err
    assert done.out


@pytest.mark.parametrize("target", ["run", "test", "smol"])
def test_a_make_target_of_the_readme_exists(target):
    made = subprocess.run(
        ["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert made.returncode == 0, made.stderr
    assert ".venv" in made.stdout


def test_the_mistake_that_the_readme_shows_reads_as_it_shows(commands: Commands, visitor: Path):
    [shown] = re.findall(r"^```\n(\$ agentrecipes .*?)```", README, re.DOTALL | re.MULTILINE)
    command, expected = shown.strip().split("\n", 1)
    text = "name: mine\nenvironment:\n  name: search\n  dataset: world\n  retriever: bm25\n"
    text += (
        "rewards: [exact_match]\nalgorithm: grpo\nmodel: {name: tiny, widht: 64}\niterations: 2\n"
    )
    (visitor / "my.yaml").write_text(text)
    done = commands.run(*shlex.split(command.removeprefix("$ "))[1:])
    assert done.code == 2
    assert expected in done.out + done.err


def test_the_recipe_that_the_readme_explains_is_the_one_in_the_menu():
    [block] = blocks("yaml")
    shown = OmegaConf.to_container(OmegaConf.create(block))
    stored = OmegaConf.to_container(OmegaConf.load(ROOT / "recipes" / "rag_r1.yaml"))

    def within(part: object, whole: object) -> bool:
        if isinstance(part, dict) and isinstance(whole, dict):
            return all(key in whole and within(part[key], whole[key]) for key in part)
        if isinstance(part, list) and isinstance(whole, list):
            return len(part) == len(whole) and all(map(within, part, whole))
        return part == whole

    assert within(shown, stored)
    assert not within({**shown, "seed": 8}, stored)


def test_the_part_that_the_readme_writes_is_found_and_valid(commands: Commands, visitor: Path):
    [block] = blocks("python")
    parts = visitor / "own_parts"
    parts.mkdir(exist_ok=True)
    (parts / "brevity.py").write_text(f'"""Short answers."""\n\n{block}')
    done = commands.run("list", "reward", "--parts", parts)
    assert done.code == 0, done.err
    assert "brevity" in done.out
    recipe = visitor / "recipes" / "rag_r1.yaml"
    checked = commands.run("check", recipe, "rewards=[brevity]", "--parts", parts)
    assert checked.code == 0, checked.err
