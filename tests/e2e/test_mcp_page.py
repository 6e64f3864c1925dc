"""docs/how-to/mcp.md: its files are written down as they stand, its commands are run."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest
from commands import Commands

PAGE = (Path(__file__).parents[2] / "docs" / "how-to" / "mcp.md").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"^```(\w+)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
READ = '<tool_call>{"name": "read", "arguments": {"title": "tea"}}</tool_call>'
WRITE = READ.replace('"read"', '"write"').replace('"tea"', '"tea", "text": "4 euros"')


@pytest.fixture(scope="module")
def folder(commands: Commands) -> Path:
    """The page's files; the server runs in the Python of the tests."""
    folder = commands.folder
    (folder / "notes.py").write_text(BLOCKS["python"], encoding="utf-8")
    declared = json.loads(BLOCKS["json"])
    declared["mcpServers"]["notes"]["command"] = sys.executable
    declared["mcpServers"]["notes"]["args"] = [str(folder / "notes.py")]
    (folder / "mcp.json").write_text(json.dumps(declared), encoding="utf-8")
    (folder / "notes.yaml").write_text(BLOCKS["yaml"], encoding="utf-8")
    return folder


@pytest.mark.parametrize("line", BLOCKS["sh"].splitlines())
def test_a_command_of_the_page_runs(commands: Commands, folder: Path, line: str):
    done = commands.run(*shlex.split(line)[1:])
    assert done.code == 0, done.err


def test_an_episode_writes_and_reads_notes_and_the_calls_are_counted(commands, folder):
    turns = [{"action": each} for each in (WRITE, READ, "<answer> 4 </answer>")]
    told = {"id": "a", "task": {"question": "How much is tea?", "golden_answers": ["4"]}}
    (folder / "said.jsonl").write_text(json.dumps({**told, "turns": turns}), encoding="utf-8")
    words = ("env", "notes.yaml", "--agent", "script", "--script", "said.jsonl")
    done = commands.run(*words, "--json")
    assert done.code == 0, done.err
    [episode] = done.json["episodes"]
    shown = [turn["observation"] or "" for turn in episode["transcript"]]
    assert ("1 notes" in shown[0], "4 euros" in shown[1]) == (True, True)
    assert (episode["outcomes"], episode["total"]) == ({"result": 2}, 1.0)
