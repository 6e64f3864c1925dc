"""A finished run's agent is asked on the command line and over HTTP."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest
from commands import Commands
from openai import OpenAI

PARTS = Path(__file__).parent / "parts"
PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-the-agent.md"
QUESTIONS = "capital of mira ?\n\nriver of mira ?\n"


def test_a_run_is_asked_line_by_line(commands: Commands, whole: Path):
    done = commands.run("chat", whole, "--parts", PARTS, "--greedy", typed=QUESTIONS)
    assert done.code == 0, done.err
    assert len(done.out.splitlines()) == 2  # an empty line is no question
    again = commands.run("chat", whole, "--parts", PARTS, "--greedy", typed=QUESTIONS)
    assert (again.out, again.err) == (done.out, done.err)


@pytest.fixture
def server(commands: Commands, whole: Path):
    """The address of a server for the run; it is stopped by Ctrl-C and says nothing more."""
    env = {"AGENTRECIPES_KEY": "secret"}
    command = commands.start("serve", whole, "--port", "0", "--parts", PARTS, env=env)
    command.says("until Ctrl-C")
    yield re.search(r"http://\S+/v1", command.err)[0]
    command.signal(signal.SIGINT)
    assert command.wait().code == 0, command.err
    assert "Traceback" not in command.err


def test_the_python_of_the_page_talks_to_a_served_run(server, monkeypatch, capsys):
    [program] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    program = program.replace("http://127.0.0.1:8000/v1", server).replace("none", "secret")
    exec(compile(program, "use-the-agent.md", "exec"), {})
    capsys.readouterr()
    with OpenAI(base_url=server, api_key="secret", max_retries=0) as client:
        question = {"role": "user", "content": "capital of mira ?"}
        asked = {"model": "whole", "messages": [question], "temperature": 0}
        one, two = (client.chat.completions.create(**asked).choices[0] for _ in range(2))
    assert one.message.content == two.message.content
    assert one.finish_reason in ("stop", "length")


def test_serving_beyond_loopback_needs_a_key(commands: Commands, whole: Path):
    assert "AGENTRECIPES_KEY" not in os.environ
    done = commands.run("serve", whole, "--host", "0.0.0.0", "--parts", PARTS)
    assert done.code == 2
    assert "0.0.0.0 can be reached from elsewhere. Set AGENTRECIPES_KEY first." in done.err


def test_a_port_that_is_taken_is_told(commands: Commands, whole: Path, server):
    port = server.split(":")[2].split("/")[0]
    done = commands.run("serve", whole, "--port", port, "--parts", PARTS)
    assert done.code == 1
    assert f"nothing can listen on 127.0.0.1:{port}" in done.err


def test_a_run_without_a_model_cannot_be_asked(commands: Commands):
    folder = commands.folder / "runs" / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "recipe.yaml").write_text("name: empty\n")
    done = commands.run("chat", folder)
    assert done.code == 2
    assert "has no model. A run writes it at its end" in done.err
