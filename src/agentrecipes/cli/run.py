"""``run``: train, evaluate and track a recipe, or go on with a run."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    Profile,
    RunsDir,
    add_parts,
    find_run,
    is_run,
    open_recipe,
    runs_folder,
)
from agentrecipes.cli.launch import launch
from agentrecipes.cli.output import emit_json, note, spared
from agentrecipes.cli.summary import summary_text
from agentrecipes.components import added_files
from agentrecipes.errors import AgentRecipesError, CheckFailed, RecipeError

if TYPE_CHECKING:
    from agentrecipes.compile import RunPlace
    from agentrecipes.recipe.load import Recipe

Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RECIPE [KEY=VALUE]",
        help="A recipe's file or name, then values that replace its own; none with --resume.",
        show_default=False,
    ),
]
RunDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="The run's own folder; default: a new one in --runs-dir."),
]
Locked = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Refuse to run when an input differs from this recipe.lock."),
]
Resume = Annotated[
    str | None, typer.Option(metavar="RUN", help="Go on with this run from its last checkpoint.")
]
Reuse = Annotated[
    bool,
    typer.Option("--reuse", help="Do not run again a stage that was run with equal inputs."),
]
EXIT = {"finished": 0, "failed": 1, "stopped": 1, "interrupted": 130}


def run(  # noqa: PLR0913 - a command's parameters are its options
    words: Words = None,
    profile: Profile = None,
    run_dir: RunDir = None,
    runs_dir: RunsDir = None,
    locked: Locked = None,
    resume: Resume = None,
    reuse: Reuse = False,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Train, evaluate and track a recipe; or go on with a run with --resume."""
    if resume is not None:
        if words or profile or run_dir or locked or reuse:
            raise RecipeError(
                "--resume RUN takes no recipe, profile, --run-dir, --locked or --reuse"
            )
        add_parts(parts)
        with spared(as_json):
            summary = go_on(find_run(resume, runs_dir))
    else:
        recipe = open_recipe(words or [], profile, parts=parts)
        if locked is not None:
            compare_lock(recipe, locked)
        with spared(as_json):
            summary = start(recipe, run_dir=run_dir, runs=runs_folder(runs_dir), reuse=reuse)
    if not _leads():
        raise typer.Exit(0 if summary["status"] != "failed" else EXIT["failed"])
    if as_json:
        emit_json(summary)
    else:
        typer.echo(summary_text(summary))
    raise typer.Exit(EXIT[summary["status"]])


def start(
    recipe: Recipe, *, run_dir: Path | None, runs: Path, reuse: bool = False
) -> dict[str, Any]:
    """Run a recipe in a folder of its own; return the summary.

    Raises:
        RecipeError: the folder holds a run already, or `reuse` meets several processes.
    """
    if run_dir is not None and is_run(run_dir) and _leads():
        message = f"{str(run_dir)!r} holds a run already"
        raise RecipeError.about("taken", message, "Choose another --run-dir, or --resume.")
    from agentrecipes.compile import RunPlace

    place = RunPlace.new(recipe, runs) if run_dir is None else RunPlace(runs, run_dir)
    if not reuse:
        return carried_out(recipe, place, resume=False)
    if max(stage.trainer.devices * stage.trainer.nodes for stage in recipe.stages) > 1:
        raise RecipeError("--reuse takes a recipe of one process. Leave it out, or set devices=1")
    from agentrecipes.training.reuse import Stages

    stages = Stages(runs, recipe, place.folder)
    taken = stages.take()
    if taken is not None:
        note(f"{place.name}: stages up to {taken!r} were run already")
    return carried_out(recipe, replace(place, stages=stages), resume=taken is not None)


def go_on(folder: Path) -> dict[str, Any]:
    """Resume the run in a folder; one that is finished is left as it is."""
    from agentrecipes.tracking.running import was_left

    done = folder / "summary.json"
    if done.is_file() and not was_left(folder):
        summary: dict[str, Any] = json.loads(done.read_text(encoding="utf-8"))
        if summary["status"] == "finished":
            return summary
    from agentrecipes.compile import RunPlace

    runs = Path(_locked(folder).get("runs", folder.parent))
    place = RunPlace(runs if runs.is_dir() else folder.parent, folder)
    return carried_out(recipe_of(folder), place, resume=True)


def _locked(run: Path) -> dict[str, Any]:
    """A run's lock, with where it stood beside the inputs; nothing where it has none yet."""
    path = run / "recipe.lock"
    locked: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    return locked


def recipe_of(run: Path, overrides: Sequence[str] = ()) -> Recipe:
    """A run's resolved recipe; the lock says the rest: profile, origins, folder."""
    from agentrecipes.recipe.load import load

    locked = _locked(run)
    folder = Path(locked["folder"]) if "folder" in locked else None
    recipe = load(run / "recipe.yaml", overrides, folder=folder)
    origin = recipe.origin if overrides else {**recipe.origin, **locked.get("origin", {})}
    return replace(recipe, profile=locked.get("profile"), origin=origin)


def carried_out(recipe: Recipe, place: RunPlace, *, resume: bool) -> dict[str, Any]:
    """Run a recipe here, or in as many processes as it asks for; its summary."""
    from agentrecipes.training import cluster, ranks

    if not cluster.prepared(recipe, os.environ):
        count = cluster.devices(recipe)
        return launch(recipe, place, resume=resume, count=count)
    try:
        return _watched(recipe, ranks.from_first(place), resume=resume)
    finally:
        ranks.leave()


def _leads() -> bool:
    """Whether this process speaks for the run: of its ranks, the first one does."""
    return os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) == "0"


def _watched(recipe: Recipe, place: RunPlace, *, resume: bool) -> dict[str, Any]:
    from agentrecipes import experiment
    from agentrecipes.cli.progress import watch
    from agentrecipes.compile import compile_recipe
    from agentrecipes.training import ranks

    if not ranks.leads():
        return experiment.run(compile_recipe(recipe, place), resume=resume)
    with watch() as progress:
        progress.note(f"{place.name}: {recipe.hash[:12]}, seed {recipe.seed}, in {place.folder}")
        made = compile_recipe(recipe, place)
        try:
            return experiment.run(made, progress, resume=resume)
        except Exception as error:  # the run is over; its summary is the answer all the same
            if isinstance(error, AgentRecipesError) and error.exit_code != EXIT["failed"]:
                raise
            failure = error
    return _failed(place.folder, failure)


def _failed(folder: Path, error: Exception) -> dict[str, Any]:
    """The summary of a run that an error ended; the error goes to stderr.

    Raises:
        Exception: the error itself, where no summary could be written.
    """
    path = folder / "summary.json"
    summary: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    if summary.get("status") != "failed":
        raise error
    if isinstance(error, AgentRecipesError):
        note(f"error: {error}")
    else:
        traceback.print_exception(error)
    return summary


def compare_lock(recipe: Recipe, path: Path) -> None:
    """Hold the recipe's inputs to a lock file.

    Raises:
        RecipeError: there is no such file.
        CheckFailed: an input differs.
    """
    if not path.is_file():
        raise RecipeError.about("missing_file", f"there is no lock file {str(path)!r}")
    from agentrecipes.recipe.lock import compare, lock

    wanted = json.loads(path.read_text(encoding="utf-8"))
    found = lock(recipe, extra_files=added_files())
    differing = [
        f"{name} is {found['inputs'].get(name)!r}, but {wanted['inputs'].get(name)!r} was locked"
        for name in compare(wanted, found)
    ]
    if differing:
        raise CheckFailed(f"{path}: {'; '.join(differing)}")
