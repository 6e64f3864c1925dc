"""The pages of docs/how-to: their files are written down as they stand, their commands are run."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from commands import Commands

from agentrecipes.components import add_folder, build

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "own-tools.md").read_text(encoding="utf-8")

BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def block(language: str) -> str:
    [found] = [text for name, text in BLOCKS if name == language]
    return found


LINES = block("sh").splitlines()
SMALL = [
    "model={name: tiny, layers: 1}",
    "tracking.backend=none",
    "iterations=1",
    "rollout.tasks=1",
    "rollout.group_size=2",
]
SMALL += ["rollout.tokens_per_turn=8", "rollout.tokens=120", "evaluation.tasks=1"]
SMALL += ["environment.instructions=none"]  # they are long for a model that writes byte by byte


@pytest.fixture(scope="module")
def shop(commands: Commands) -> Path:
    """The page's three files, where commands start."""
    folder = commands.folder
    (folder / "tools").mkdir(exist_ok=True)
    (folder / "tools" / "shop.py").write_text(block("python"), encoding="utf-8")
    (folder / "tasks.jsonl").write_text(block("json"), encoding="utf-8")
    (folder / "shop.yaml").write_text(block("yaml"), encoding="utf-8")
    return folder


@pytest.mark.parametrize("line", LINES)
def test_a_command_of_the_page_runs(commands: Commands, shop: Path, line: str):
    done = commands.run(*shlex.split(line)[1:])
    assert done.code == 0, done.err


def test_the_oracle_plays_as_the_page_shows(commands: Commands, shop: Path):
    [line] = [line for line in LINES if "oracle" in line]
    assert block("") in commands.run(*shlex.split(line)[1:]).out
    told = commands.run(*shlex.split(line)[1:], "--json").json
    assert told["mean_total"] == 1.0
    asked = told["episodes"][1]["transcript"]
    assert asked[0]["observation"].count("<tool_response>") == 2


def test_the_recipe_of_the_page_trains_a_small_model(commands: Commands, shop: Path):
    words = shlex.split(re.findall(r"`agentrecipes (run [^`]+)`", PAGE)[0])
    done = commands.run(*words, *SMALL, "--run-dir", shop / "runs" / "shop", "--json")
    assert done.code == 0, done.err
    assert done.json["status"] == "finished"


def test_the_tool_of_the_page_does_what_its_table_says(shop: Path):
    add_folder(shop / "tools")
    part = build("tool", "price")
    assert asyncio.run(part.call({"item": "honey", "count": 3})).text == "21 euros"
    with pytest.raises(ValueError, match="there is no coffee"):
        asyncio.run(part.call({"item": "coffee"}))
    assert "how many" in json.dumps(part.schema)


SHARE = (ROOT / "docs" / "how-to" / "share.md").read_text(encoding="utf-8")


def test_the_commands_of_the_sharing_page_run_one_after_the_other(commands: Commands):
    [block] = re.findall(r"^```sh\n(.*?)^```$", SHARE, re.DOTALL | re.MULTILINE)
    recipes = commands.folder / "recipes"
    recipes.mkdir(exist_ok=True)
    shutil.copy(ROOT / "recipes" / "rag_r1.yaml", recipes)
    for line in block.splitlines():
        done = commands.run(*shlex.split(line)[1:])
        assert done.code == 0, f"{line}: {done.err}"
        assert done.out, line


DOCUMENTS = (ROOT / "docs" / "how-to" / "own-documents.md").read_text(encoding="utf-8")
FILES = {"json": "documents.jsonl", "jsonl": "questions.jsonl", "yaml": "documents.yaml"}


@pytest.fixture(scope="module")
def documents(commands: Commands) -> list[tuple[str, str]]:
    """The blocks of the page on documents, its files being where commands start."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", DOCUMENTS, re.DOTALL | re.MULTILINE)
    for language, text in blocks:
        if language in FILES:
            (commands.folder / FILES[language]).write_text(text, encoding="utf-8")
    return blocks


def test_the_commands_of_the_documents_page_run(commands: Commands, documents):
    lines = [line for name, text in documents if name == "sh" for line in text.splitlines()]
    assert len(lines) == 4
    for line in lines:
        done = commands.run(*shlex.split(line)[1:])
        assert done.code == 0, f"{line}: {done.err}"
    [oracle] = [line for line in lines if "oracle" in line]
    played = commands.run(*shlex.split(oracle)[1:])
    [shown] = [text for name, text in documents if name == ""]
    assert shown in played.out
    assert commands.run(*shlex.split(oracle)[1:], "--json").json["mean_total"] == 1.0


def test_the_documents_page_tells_the_defaults_of_the_server():
    part = build("retriever", "http")
    told = f"`url` (default `{part.url}`)"
    assert told in DOCUMENTS
    assert f"`timeout_seconds` ({part.timeout_seconds:g})" in DOCUMENTS
    assert f"`retries` times ({part.retries})" in DOCUMENTS
