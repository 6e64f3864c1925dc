"""``report``: runs as one HTML page that opens from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentrecipes.cli.arguments import Json, RunsDir, find_run
from agentrecipes.cli.output import emit_json
from agentrecipes.errors import AgentRecipesError

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN...",
        help="Runs' names or folders; those of one recipe are drawn as its seeds.",
        show_default=False,
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="The page; default: [b]report.html[/b] in the run's folder, of several runs here.",
    ),
]


def report(names: Runs, out: Out = None, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """Write curves, figures, recipe and trajectories of runs as one self-contained HTML page."""
    folders = list({run.resolve(): run for run in (find_run(n, runs_dir) for n in names)}.values())
    single = folders[0] if len(folders) == 1 else Path()
    from agentrecipes.tracking.report.page import write_report

    target = out or single / "report.html"
    try:
        path = write_report(folders, target)
    except OSError as error:
        raise AgentRecipesError(f"{target}: cannot be written: {error}") from None
    if as_json:
        emit_json({"path": str(path)})
    else:
        typer.echo(path)
