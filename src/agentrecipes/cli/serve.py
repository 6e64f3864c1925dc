"""``serve`` and ``chat``: the agent of a run, for programs and for people."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrecipes.cli.arguments import Parts, RunsDir, add_parts, find_run, model_of
from agentrecipes.cli.output import note
from agentrecipes.cli.run import recipe_of
from agentrecipes.errors import Problem, RecipeError

if TYPE_CHECKING:
    from agentrecipes.records import Turn
    from agentrecipes.serving.agent import Agent

KEY = "AGENTRECIPES_KEY"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
RunName = Annotated[str, typer.Argument(metavar="RUN", help="A finished run's name or folder.")]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Values that replace the recipe's own."),
]
Host = Annotated[str, typer.Option(help="Where to listen; beyond loopback a key must be set.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="0 finds a free one.")]
Waiting = Annotated[int, typer.Option(min=1, help="Requests at once; more get status 429.")]
Greedy = Annotated[bool, typer.Option("--greedy", help="Always the likeliest token.")]


def serve(  # noqa: PLR0913 - a command's parameters are its options
    run: RunName,
    words: Words = None,
    host: Host = "127.0.0.1",
    port: Port = 8000,
    waiting: Waiting = 256,
    parts: Parts = None,
    runs_dir: RunsDir = None,
) -> None:
    """Serve a run's agent as OpenAI-style chat completions; the key comes from AGENTRECIPES_KEY."""
    key = os.environ.get(KEY) or None
    if host not in LOOPBACK and key is None:
        raise RecipeError(
            [Problem("no_key", "", f"{host} can be reached from elsewhere", f"Set {KEY} first.")]
        )
    agent = _agent(run, words, parts=parts, runs_dir=runs_dir)
    from agentrecipes.serving.server import Desk, Limits
    from agentrecipes.serving.server import serve as listen

    try:
        listen(Desk(agent, Limits(key=key, waiting=waiting)), host, port, told=note)
    finally:
        agent.close()


def chat(
    run: RunName,
    words: Words = None,
    greedy: Greedy = False,
    parts: Parts = None,
    runs_dir: RunsDir = None,
) -> None:
    """Ask a run's agent: each line is a question of its own; its steps are shown as they happen."""
    agent = _agent(run, words, parts=parts, runs_dir=runs_dir)
    from agentrecipes.serving.agent import Sampling

    sampling = Sampling(temperature=0.0) if greedy else Sampling()

    async def talk() -> None:
        while (question := await asyncio.to_thread(_line)) is not None:
            if question:
                found = await agent.ask(question, sampling, on_turn=_show)
                said = found.answer if found.answer is not None else f"(no answer: {found.stop})"
                typer.echo(said)

    try:
        asyncio.run(talk())
    finally:
        agent.close()


def _line() -> str | None:
    """The next question; None at the end."""
    if sys.stdin.isatty():
        note("> ")
    line = sys.stdin.readline()
    return line.strip() if line else None


def _show(turn: Turn) -> None:
    for text in (turn.action_text, turn.observation_text):
        if text:
            note(f"  {text.strip()}")


def _agent(
    run: str, words: list[str] | None, *, parts: Path | None, runs_dir: Path | None
) -> Agent:
    folder = find_run(run, runs_dir)
    add_parts(parts)
    model_of(folder)  # before anything heavy is imported
    recipe = recipe_of(folder, words or [])
    from agentrecipes.serving.agent import Agent

    return Agent.load(folder, recipe)
