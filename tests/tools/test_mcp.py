"""A real MCP server over stdio: in an episode, out of time, dead, and gone at the end."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentrecipes.components import build
from agentrecipes.errors import RecipeError
from agentrecipes.records import Stop
from agentrecipes.rollout.collect import run
from agentrecipes.rollout.play import Played, play, texts
from agentrecipes.tools import mcp_link

SERVER = Path(__file__).parent / "notes_server.py"
SUMS = {"name": "arithmetic", "train": 6, "dev": 6, "test": 6}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A declaration of servers; `pids` has a line for each that was started."""
    folder = tmp_path_factory.mktemp("mcp")
    notes = {"command": sys.executable, "args": [str(SERVER), str(folder / "pids")]}
    servers = {
        "notes": notes,
        "nothing": {"command": str(folder / "no such program")},
        "silent": {"command": sys.executable, "args": ["-c", "import time; time.sleep(60)"]},
    }
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    return folder


@pytest.fixture(autouse=True)
def _declared(folder, monkeypatch) -> None:
    monkeypatch.setenv("AGENTRECIPES_MCP", str(folder / "mcp.json"))


def environment(**fields: object) -> Any:
    parts = {"dataset": SUMS, "tools": ["calculator", {"name": "mcp", "server": "notes"}]}
    limits = {"limits": {"seconds": 5.0}}
    return build("environment", {"name": "tools", "max_turns": 9, **parts, **limits, **fields})


def call(name: str, **arguments: object) -> str:
    said = json.dumps({"name": name, "arguments": arguments})
    return f"<tool_call>{said}</tool_call>"


def played(*actions: str, **fields: object) -> Played:
    own = environment(**fields)
    return play(own, own.tasks("dev")[0], agent=texts(actions))


def alive(folder: Path) -> list[int]:
    """The servers that were started and run still."""
    pids = [int(line) for line in (folder / "pids").read_text().split()]
    assert pids
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_an_episode_with_a_server_that_works_fails_is_late_and_dies(folder):
    done = played(
        call("write", note="a"),
        call("write", note="b"),
        call("fail", why="no ink"),
        call("write", paper="c"),
        call("calculator", expression="2 + 3"),
        call("wait", seconds=60),
        call("die"),
        "<answer> 5 </answer>",
    )
    shown = [text.removeprefix("<tool_response>\n") for text in done.view.observations]
    assert [text.partition("\n")[0] for text in shown[:2]] == ["1", "2"]
    assert shown[2].startswith("error: Error executing tool fail")
    assert shown[3].startswith("error: note is missing; no argument is called 'paper'")
    assert shown[4].startswith("5\n")
    assert shown[5].startswith("error: no result within 5 s")
    outcomes = [name for turn in done.outcomes for name in turn]
    assert outcomes == ["result", "result", "error", "wrong_arguments", "result", "late"]
    assert (done.stop, done.turns) == (Stop.TOOL_ERROR, 7)
    assert done.error.startswith("the MCP server 'notes' is gone")
    assert alive(folder) == []


def test_the_policy_is_told_what_the_server_says_of_its_tools():
    [system, _] = environment().open(environment().tasks("dev")[0], 0).messages
    assert "Keep a note; says how many there are." in system.content
    some = environment(tools=[{"name": "mcp", "server": "notes", "tools": ["wait"]}])
    [system, _] = some.open(some.tasks("dev")[0], 0).messages
    assert ('"wait"' in system.content, '"write"' in system.content) == (True, False)


@pytest.mark.parametrize(
    ("server", "said"),
    [
        ("nothing", "the MCP server 'nothing' cannot be started: FileNotFoundError"),
        ("silent", "the MCP server 'silent' told no tools within 1 s"),
        ("nots", "no MCP server is called 'nots'. Did you mean 'notes'?"),
    ],
)
def test_a_server_that_tells_no_tools_is_the_declaration_s_fault(server, said):
    part = build("tool", {"name": "mcp", "server": server, "start_seconds": 1.0})
    with pytest.raises(RecipeError, match=said.replace("?", r"\?")):
        _ = part.schemas


def test_a_tool_that_the_server_lacks_is_named():
    part = build("tool", {"name": "mcp", "server": "notes", "tools": ["wriet"]})
    with pytest.raises(RecipeError, match=r"has no tool 'wriet'\. Did you mean 'write'"):
        _ = part.schemas


def test_check_starts_nothing_and_knows_the_declared_servers(folder, tmp_path, monkeypatch):
    def problems(server: str) -> list[str]:
        part = build("tool", {"name": "mcp", "server": server})
        return [f"{one.code} {one.suggestion}" for one in part.rules(SimpleNamespace())]

    before = (folder / "pids").stat().st_size if (folder / "pids").exists() else 0
    assert problems("notes") == []
    [said] = problems("note")
    assert said.startswith("unknown_server Did you mean 'notes'? Declare it in mcp.json")
    assert ((folder / "pids").stat().st_size if (folder / "pids").exists() else 0) == before
    monkeypatch.delenv("AGENTRECIPES_MCP")
    monkeypatch.chdir(tmp_path)
    assert problems("notes")[0].startswith("unknown_server Known: none.")
    (tmp_path / "mcp.json").write_text('{"servers": {}}')
    with pytest.raises(RecipeError, match=r"mcp.json: declares no MCP servers"):
        problems("notes")


def test_a_tool_that_changed_is_not_called_and_its_server_ends_without_a_fight(folder):
    declared = json.dumps(json.loads((folder / "mcp.json").read_text())["mcpServers"]["notes"])
    told = mcp_link.listed(json.dumps(json.loads(declared), sort_keys=True), "notes", 60.0)
    other = [{**one, "description": "Something else."} for one in told]

    async def ask() -> Any:
        link = mcp_link.Link(declared, "notes", other, seconds=60.0)
        result = await link.tools[0].call({"note": "a"})
        assert len(alive(folder)) == 1
        await link.close()
        return result

    assert "describes the tool differently now" in run(ask()).error
    assert alive(folder) == []


@pytest.fixture
def web(folder, monkeypatch) -> Iterator[subprocess.Popen[bytes]]:
    """The server over HTTP on a port of this machine, declared as ``web``."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        port = door.getsockname()[1]
    words = [sys.executable, str(SERVER), str(folder / "web_pids"), str(port)]
    with subprocess.Popen(words, stderr=subprocess.DEVNULL) as process:
        try:
            _await_door(port)
            path = folder / "web.json"
            url = {"url": f"http://127.0.0.1:{port}/mcp", "headers": {"Authorization": "Bearer k"}}
            path.write_text(json.dumps({"mcpServers": {"web": url}}))
            monkeypatch.setenv("AGENTRECIPES_MCP", str(path))
            yield process
        finally:
            process.kill()


def _await_door(port: int) -> None:
    for _ in range(300):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return
        time.sleep(0.1)
    raise AssertionError("the server does not listen")


def test_a_server_over_http_is_used_in_an_episode_and_goes_on_after_it(web):
    own = environment(tools=["calculator", {"name": "mcp", "server": "web"}])
    asked = (call("write", note="a"), call("fail", why="no ink"), "<answer> 5 </answer>")
    done = play(own, own.tasks("dev")[0], agent=texts(asked))
    assert [name for turn in done.outcomes for name in turn] == ["result", "error"]
    assert done.view.observations[0].startswith("<tool_response>\n1\n")
    assert (done.stop, web.poll()) == (Stop.ANSWERED, None)
    again = play(own, own.tasks("dev")[0], agent=texts((call("write", note="b"), call("die"))))
    assert again.view.observations[0].startswith("<tool_response>\n2\n")  # it is one server
    assert again.stop is Stop.TOOL_ERROR
    assert again.error.startswith("the MCP server 'web' is gone")
    assert web.wait(timeout=10.0) == 3
