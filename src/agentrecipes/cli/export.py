"""``export``: a run's model in a folder of its own, for transformers and servers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agentrecipes.cli.arguments import Json, RunsDir, find_run, model_of
from agentrecipes.cli.output import emit_json, note
from agentrecipes.errors import AgentRecipesError, RecipeError

RunName = Annotated[str, typer.Argument(metavar="RUN", help="A run's name or folder.")]
Target = Annotated[Path, typer.Argument(metavar="DIR", help="A new folder, or an empty one.")]
Merge = Annotated[
    bool, typer.Option("--merge", help="Merge an adapter into the weights that it stands beside.")
]


def export(
    run: RunName,
    target: Target,
    merge: Merge = False,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Write a run's model, or its adapter, with its tokenizer where transformers loads them."""
    folder = find_run(run, runs_dir)
    model = model_of(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        message = f"{str(target)!r} holds something"
        raise RecipeError.about("taken", message, "Name a new folder.")
    if merge and not (model / "adapter_config.json").is_file():
        note("the run trained all weights: there is no adapter to merge, the model is copied")
    from agentrecipes.training.export import export_model

    try:
        count = export_model(model, target, merge=merge)
    except OSError as error:
        raise AgentRecipesError(f"{target}: cannot be written: {error}") from None
    if as_json:
        emit_json({"dir": str(target), "bytes": count})
    else:
        typer.echo(f"{target}: {count / 2**20:.1f} MiB")
