"""``eval``: measure a run's model, or a recipe's, on a split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    Profile,
    RunsDir,
    add_parts,
    is_run,
    one_name,
    open_recipe,
    runs_folder,
    split_words,
)
from agentrecipes.cli.output import emit_json, spared, table
from agentrecipes.cli.run import recipe_of
from agentrecipes.errors import RecipeError

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN|RECIPE [KEY=VALUE]",
        help="A run's name or folder, or a recipe; then values that replace the recipe's.",
        show_default=False,
    ),
]
Split = Annotated[
    Literal["train", "dev", "test"] | None,
    typer.Option(help="Which tasks; default: the recipe's evaluation.split."),
]
Tasks = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="How many tasks; default: the recipe's.")
]
Mode = Annotated[
    Literal["sampled", "greedy"] | None, typer.Option(help="How to sample; default: the recipe's.")
]


def evaluate(  # noqa: PLR0913 - a command's parameters are its options
    words: Words,
    split: Split = None,
    tasks: Tasks = None,
    mode: Mode = None,
    profile: Profile = None,
    runs_dir: RunsDir = None,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Evaluate a run's model, or a recipe's as it is before training."""
    add_parts(parts)
    recipe, model = opened(words, profile, runs_dir=runs_dir)
    from agentrecipes.cli.progress import watch
    from agentrecipes.training.measure import measure

    wanted = {"split": split, "tasks": tasks, "modes": (mode,) if mode else None}
    chosen = {key: value for key, value in wanted.items() if value is not None}
    evaluation = recipe.stages[-1].evaluation.model_copy(update=chosen)
    with spared(as_json), watch() as progress:
        rows: list[dict[str, Any]] = measure(recipe, evaluation, model=model, progress=progress)
    if as_json:
        emit_json({"evaluations": rows})
        return
    columns = ("stage", "split", "mode", "metric", "value", "standard_error", "tasks")
    typer.echo(table(columns, ([row.get(key) for key in columns] for row in rows)))


def opened(
    words: list[str], profile: str | None, *, runs_dir: Path | None
) -> tuple[Recipe, Path | None]:
    """The recipe to measure with, and the folder of a run's model; None for the recipe's own.

    Raises:
        RecipeError: neither a run nor a recipe is called that, or the run has no model yet.
    """
    split = split_words(words)
    name = one_name(split, "run or recipe")
    folder = next((f for f in (Path(name), runs_folder(runs_dir) / name) if is_run(f)), None)
    if folder is None:
        return open_recipe(words, profile), None
    if profile is not None:
        raise RecipeError("a run's recipe is resolved: it has no profiles any more")
    if not (folder / "model").is_dir():
        message = f"the run {name!r} has no model yet"
        raise RecipeError.about("missing_model", message, "Let it finish, or --resume it.")
    return recipe_of(folder, split.overrides), folder / "model"
