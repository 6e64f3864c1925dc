"""The command line: a table of commands, each imported only when it is used."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from agentrecipes.cli.output import report_error, report_usage
from agentrecipes.errors import AgentRecipesError


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command lives, and its line in ``--help``."""

    module: str  # of agentrecipes.cli
    function: str
    panel: str
    help: str


TRAIN, RECIPES, PLAY, RUNS = "Train", "Recipes", "Without a model", "Runs"
SHARE, SETUP = "Share", "Set-up"

COMMANDS = {
    "run": Entry("run", "run", TRAIN, "Train, evaluate and track a recipe, or resume a run."),
    "sweep": Entry("sweep", "sweep", TRAIN, "Run an Optuna study over a recipe; it resumes."),
    "eval": Entry("evaluate", "evaluate", TRAIN, "Evaluate a run's model, or a recipe's."),
    "check": Entry("check", "check", RECIPES, "Validate recipes; all problems at once."),
    "show": Entry(
        "show", "show", RECIPES, "Show the resolved recipe and where each value is from."
    ),
    "plan": Entry("plan", "plan", RECIPES, "Show a recipe's memory and time, without loading it."),
    "list": Entry(
        "parts", "parts", RECIPES, "List the parts a recipe can name, with their fields."
    ),
    "schema": Entry("schema", "schema", RECIPES, "Print the JSON Schema of recipes, for editors."),
    "new": Entry("new", "new", RECIPES, "Write a starter recipe, or a plug-in package."),
    "env": Entry("play", "play", PLAY, "Play a recipe's environment with a scripted agent."),
    "curriculum": Entry(
        "curriculum", "curriculum", PLAY, "Preview which tasks a recipe's curriculum picks when."
    ),
    "score": Entry("score", "score", PLAY, "Score written transcripts with a recipe's rewards."),
    "runs": Entry("query", "runs", RUNS, "List the runs."),
    "query": Entry("query", "query", RUNS, "Ask one SELECT, or a named query, over all runs."),
    "diff": Entry("diff", "diff", RUNS, "Compare two runs: recipe, first token, figures."),
    "replay": Entry("replay", "replay", RUNS, "Compute a run's rewards and advantages again."),
    "verify": Entry("verify", "verify", RUNS, "Certify the tokens that a run has stored."),
    "ui": Entry("ui", "ui", RUNS, "Open MLflow's pages on the runs, until Ctrl-C."),
    "report": Entry("report", "report", RUNS, "Write runs as one self-contained HTML page."),
    "export": Entry("export", "export", RUNS, "Write a run's model, or its adapter merged."),
    "chat": Entry("serve", "chat", RUNS, "Ask a run's agent questions; its steps are shown."),
    "serve": Entry("serve", "serve", RUNS, "Serve a run's agent to OpenAI-style clients."),
    "registry": Entry("registry", "registry", SHARE, "Search, show or verify a registry."),
    "push": Entry("registry", "push", SHARE, "Put a recipe and its figures into a registry."),
    "pull": Entry("registry", "pull", SHARE, "Fetch a recipe from a registry."),
    "doctor": Entry("doctor", "doctor", SETUP, "Show what is installed and what is missing."),
}


def load_command(name: str) -> Any:
    """The real command, from its module."""
    entry = COMMANDS[name]
    function = getattr(import_module(f"agentrecipes.cli.{entry.module}"), entry.function)
    app = typer.Typer(add_completion=False, rich_markup_mode="rich")
    app.command(name, rich_help_panel=entry.panel)(function)
    return get_command(app)


class LazyGroup(TyperGroup):
    """Lists commands from the table; a command's module is imported when the command is named."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {
            name: TyperCommand(name, help=entry.help, rich_help_panel=entry.panel)
            for name, entry in COMMANDS.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:
        """Names in the order of the table."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The named command itself; only here is its module imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, load_command(name) if name in COMMANDS else command, rest


def _version(value: bool) -> None:
    if value:
        from agentrecipes import __version__

        typer.echo(__version__)
        raise typer.Exit


def _root(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """One YAML file says how a language-model agent is trained."""


def application() -> Any:
    """The whole command line as one callable command."""
    app = typer.Typer(
        cls=LazyGroup,
        add_completion=False,
        no_args_is_help=True,
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback()(_root)
    return get_command(app)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; what a user can meet ends in its exit code, a bug in its traceback."""
    words = sys.argv[1:] if arguments is None else arguments
    as_json = "--json" in words
    try:
        code = application().main(words, prog_name="agentrecipes", standalone_mode=False)
    except typer.TyperException as error:
        code = report_usage(error, as_json)
    except AgentRecipesError as error:
        code = report_error(error, as_json)
    except KeyboardInterrupt:
        code = 130
    except typer.Abort:
        code = 1
    sys.exit(code if isinstance(code, int) else 0)
