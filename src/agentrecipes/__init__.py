"""One YAML file says how a language-model agent is trained."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentrecipes.errors import Problem
    from agentrecipes.recipe.load import Recipe

__version__ = "0.1.0"


def load(path: str | Path, overrides: Sequence[str] = (), *, profile: str | None = None) -> Recipe:
    """The recipe in a file, or the shipped one of that name, resolved and checked.

    Raises:
        RecipeError: with every problem that was found.
    """
    from agentrecipes.recipe import load as reading

    return reading.load(path, overrides, profile=profile)


def check(
    path: str | Path, overrides: Sequence[str] = (), *, profile: str | None = None
) -> list[Problem]:
    """Every problem and warning of a recipe; empty for a sound one."""
    from agentrecipes.recipe import load as reading

    return reading.check(path, overrides, profile=profile)[1]


def run(recipe: Recipe, runs: str | Path = "runs") -> dict[str, Any]:
    """Train, evaluate and record a recipe in a new folder under `runs`; its summary."""
    from agentrecipes import experiment
    from agentrecipes.compile import RunPlace, compile_recipe
    from agentrecipes.training import cluster

    place = RunPlace.new(recipe, Path(runs))
    if cluster.devices(recipe) > 1:  # its processes are the command line's
        from agentrecipes.cli.run import carried_out

        return carried_out(recipe, place, resume=False)
    return experiment.run(compile_recipe(recipe, place))
