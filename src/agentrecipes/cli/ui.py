"""``ui``: MLflow's pages on the store of the runs."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from agentrecipes.cli.arguments import Json, RunsDir, runs_folder
from agentrecipes.cli.output import emit_json, note
from agentrecipes.errors import RecipeError

Port = Annotated[
    int | None,
    typer.Option(metavar="N", min=1, max=65535, help="The port; default: one that is free."),
]
Uri = Annotated[
    str | None,
    typer.Option(
        metavar="URI", help="The store, where a recipe's [b]tracking.uri[/b] names another one."
    ),
]


def ui(port: Port = None, uri: Uri = None, runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """Open MLflow's pages on this machine until Ctrl-C."""
    runs = runs_folder(runs_dir).resolve()
    store = uri or f"sqlite:///{_database(runs)}"
    from agentrecipes.tracking.mlflow.ui import served

    stopped = threading.Event()

    def stop(number: int, frame: FrameType | None) -> None:
        stopped.set()

    before = {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    note("starting MLflow's pages; Ctrl-C ends them")
    try:
        runs.mkdir(parents=True, exist_ok=True)
        with served(store, runs / "mlflow-ui.log", port) as address:
            if as_json:
                emit_json({"url": address, "store": store})
            else:
                typer.echo(f"{address}  on {store}")
            stopped.wait()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _database(runs: Path) -> Path:
    path = runs / "mlflow.db"
    if not path.is_file():
        message = f"there is no MLflow store in {str(runs)!r}"
        hint = "Run a recipe first, or name a --runs-dir or a --uri."
        raise RecipeError.about("missing_file", message, hint)
    return path
