"""What commands have in common: their arguments, and how recipes and runs are found by name."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrecipes.errors import RecipeError

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe

RecipeWords = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE [KEY=VALUE]",
        help="A recipe's file or name, then values that replace its own: [b]rollout.tasks=4[/b].",
        show_default=False,
    ),
]
RecipesWords = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE... [KEY=VALUE]",
        help="Recipes' files or names, then values that replace their own.",
        show_default=False,
    ),
]
Profile = Annotated[
    str | None, typer.Option(metavar="NAME", help="Merge this profile of the recipe over it.")
]
Parts = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Add the parts in the Python files of this folder."),
]
Json = Annotated[bool, typer.Option("--json", help="Print exactly one JSON object on stdout.")]
RunsDir = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where runs are; default: AGENTRECIPES_RUNS, else runs/."),
]

_OVERRIDE = re.compile(r"[A-Za-z_][\w\-]*(\.[\w\-]+|\[\d+\])*=")


@dataclass(frozen=True, slots=True)
class Words:
    """Positional words, told apart: ``r.yaml seed=3`` is ``Words(("r.yaml",), ("seed=3",))``."""

    names: tuple[str, ...]
    overrides: tuple[str, ...]


def split_words(words: Sequence[str]) -> Words:
    """Tell names from ``key=value``; a file that is called like an override is a file."""
    names: list[str] = []
    overrides: list[str] = []
    for word in words:
        is_override = _OVERRIDE.match(word) is not None and not Path(word).exists()
        (overrides if is_override else names).append(word)
    return Words(tuple(names), tuple(overrides))


def one_name(words: Words, what: str) -> str:
    """The only name among the words.

    Raises:
        RecipeError: there is none, or more than one.
    """
    if len(words.names) == 1:
        return words.names[0]
    if not words.names:
        raise RecipeError.about("usage", f"no {what} was given", f"Name a {what} first.")
    extra = ", ".join(map(repr, words.names[1:]))
    raise RecipeError.about(
        "usage", f"one {what} was expected, but got more: {extra}", "Overrides are key=value."
    )


def add_parts(folder: Path | None) -> None:
    """Make the parts of a folder known.

    Raises:
        RecipeError: it is not a folder.
    """
    if folder is None:
        return
    if not folder.is_dir():
        raise RecipeError.about(
            "missing_file", f"there is no folder {str(folder)!r}", "Check --parts."
        )
    from agentrecipes.components import add_folder

    add_folder(folder)


def find_recipe(name: str) -> Path:
    """The file of a recipe given as a path, or as a name in ``./recipes`` or in the package.

    Raises:
        RecipeError: there is none; it suggests close names.
    """
    given = Path(name)
    if given.is_file():
        return given
    if given.is_dir():
        raise RecipeError.about(
            "missing_file", f"{name!r} is a folder, not a recipe", "Name its YAML file."
        )
    from agentrecipes.recipe.layers import recipes_folder

    folders = [Path("recipes"), recipes_folder()]
    if given.parent == Path():
        for folder in folders:
            path = folder / f"{name.removesuffix('.yaml')}.yaml"
            if path.is_file():
                return path
    known = {path.stem for folder in folders if folder.is_dir() for path in folder.glob("*.yaml")}
    guess = get_close_matches(given.stem, known, n=3)
    hint = f"Did you mean {' or '.join(map(repr, guess))}?" if guess else "See: agentrecipes new."
    raise RecipeError.about("missing_file", f"there is no recipe {name!r}", hint)


def open_recipe(
    words: Sequence[str], profile: str | None = None, *, parts: Path | None = None
) -> Recipe:
    """The recipe that a command's words, profile and parts name.

    Raises:
        RecipeError: any of it is wrong.
    """
    from agentrecipes.recipe.load import load

    split = split_words(words)
    add_parts(parts)
    path = find_recipe(one_name(split, "recipe"))
    return load(path, split.overrides, profile=profile)


def runs_folder(given: Path | None) -> Path:
    """``--runs-dir``, else AGENTRECIPES_RUNS, else ``runs``."""
    return given if given is not None else Path(os.environ.get("AGENTRECIPES_RUNS") or "runs")


def is_run(folder: Path) -> bool:
    """Whether a folder is a run's: its first file is ``recipe.yaml``."""
    return (folder / "recipe.yaml").is_file()


def find_run(name: str, runs_dir: Path | None) -> Path:
    """The folder of a run given as a folder or by its name.

    Raises:
        RecipeError: there is none; it suggests close names.
    """
    runs = runs_folder(runs_dir)
    for folder in (Path(name), runs / name):
        if is_run(folder):
            return folder
    known = [folder.name for folder in runs.glob("*") if is_run(folder)]
    guess = get_close_matches(name, known, n=1)
    hint = f"Did you mean {guess[0]!r}?" if guess else "See: agentrecipes runs."
    raise RecipeError.about("missing_run", f"there is no run {name!r} in {str(runs)!r}", hint)


def model_of(run: Path) -> Path:
    """The folder of a run's model.

    Raises:
        RecipeError: the run has none yet.
    """
    if (run / "model").is_dir():
        return run / "model"
    hint = f"A run writes it at its end: agentrecipes run --resume {run}"
    raise RecipeError.about("missing_model", f"the run {run.name!r} has no model", hint)
