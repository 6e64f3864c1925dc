"""The door of this package: a sweep file becomes a `Sweep`, or every problem that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

import agentrecipes
from agentrecipes.errors import Problem, RecipeError
from agentrecipes.recipe.layers import locate, recipes_folder
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.load import check as check_recipe
from agentrecipes.recipe.merge import as_part
from agentrecipes.recipe.positions import Node, plain
from agentrecipes.recipe.problems import from_pydantic
from agentrecipes.recipe.shape import Shape
from agentrecipes.recipe.source import read
from agentrecipes.sweeps import ranges, rules
from agentrecipes.sweeps.marks import at
from agentrecipes.sweeps.schema import SweepFields
from agentrecipes.sweeps.space import Entry, Space, overrides
from agentrecipes.tracking.paths import flatten

SHAPE = Shape(SweepFields)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A study that was checked: every end of its space passes the recipe's own check."""

    file: Path
    fields: SweepFields
    space: Space
    recipe: Recipe  # what all trials share
    source: Path  # the recipe's file
    given: tuple[str, ...]  # overrides of all trials: those of the file, then the command line's

    @property
    def name(self) -> str:
        return self.fields.study or self.file.stem

    def recipe_of(self, values: dict[str, Any], seed: int) -> tuple[Recipe | None, list[Problem]]:
        """The recipe of one run, or what is wrong with this combination of values."""
        texts = [*self.given, *overrides(values), f"seed={seed}"]
        return check_recipe(self.source, texts, profile=self.fields.profile)

    def seed(self, index: int, values: dict[str, Any]) -> int:
        """The seed of a trial's run number `index`."""
        return int(values.get("seed", self.recipe.seed)) + index

    def identity(self) -> dict[str, Any]:
        """What must not change while the study goes on, as plain JSON data."""
        recipe = flatten(self.recipe.data)
        tracking = {path for path in recipe if path.startswith("tracking.")}
        return {
            "recipe": {path: text for path, text in recipe.items() if path not in tracking},
            "space": self.space.as_dict(),
            "objective": [objective.dump() for objective in self.fields.objective],
        }


def sweeps_folder() -> Path:
    """Where the shipped sweeps are: in the package in a wheel, beside ``src`` in a checkout."""
    package = Path(agentrecipes.__file__).parent
    packaged = package / "_sweeps"
    return packaged if packaged.is_dir() else package.parents[1] / "sweeps"


def load(path: Path, given: Sequence[str] = ()) -> Sweep:
    """The study in a file; `given` are overrides of its recipe.

    Raises:
        RecipeError: with every problem at once.
    """
    sweep, problems = check(path, given)
    errors = [problem for problem in problems if problem.severity == "error"]
    if sweep is None or errors:
        raise RecipeError(errors)
    return sweep


def check(path: Path, given: Sequence[str] = ()) -> tuple[Sweep | None, list[Problem]]:
    """The study, or None where there are errors; and all problems, warnings too."""
    try:
        tree = read(path, str(path))
    except RecipeError as error:
        return None, list(error.problems)
    fields, problems = _fields(tree)
    source, more = _source(tree, path)
    problems += more
    if source is None:
        return None, problems
    profile = _text(tree, "profile")
    fixed, more = ranges.fixed(tree, source, profile=profile)
    problems += more
    texts = (*fixed, *given)
    recipe, found = check_recipe(source, texts, profile=profile)
    if recipe is None and not more:
        problems += found
    if fields is None:
        return None, problems
    space, more = _space(tree, fields)
    problems += more
    problems += rules.problems(tree, fields, recipe) if recipe is not None else ()
    if space is None or recipe is None:
        return None, problems
    sweep = Sweep(path, fields, space, recipe, source, texts)
    problems += rules.of_the_space(tree, fields, space)
    problems += rules.taken(tree, space, given)
    problems += ranges.of_the_space(tree, space, source, texts=texts, profile=profile)
    problems = list(dict.fromkeys(problems))
    return (None if any(p.severity == "error" for p in problems) else sweep), problems


def _fields(tree: Node) -> tuple[SweepFields | None, list[Problem]]:
    tree = _spelled_out(tree)
    try:
        return SweepFields.model_validate(plain(tree)), []
    except ValidationError as error:
        return None, from_pydantic(error, tree, SHAPE)


def _spelled_out(tree: Node) -> Node:
    """The short forms as their long ones: ``sampler: tpe``, one objective instead of a list."""
    entries = dict(tree.items)
    for key in ("sampler", "pruner"):
        if key in entries:
            entries[key] = as_part(entries[key])
    if (one := entries.get("objective")) is not None and one.items:
        entries["objective"] = Node([one], one.place, one.path, one.key)
    return replace(tree, value=entries)


def _source(tree: Node, path: Path) -> tuple[Path | None, list[Problem]]:
    """The recipe's file: beside the sweep file, below its parent, here, or a shipped one."""
    name = _text(tree, "recipe")
    if name is None:
        return None, []
    beside = path.resolve().parent
    shipped = recipes_folder() / Path(name).name  # a shipped sweep says recipes/<name>.yaml
    packaged = (shipped,) if beside == sweeps_folder().resolve() else ()
    for found in (beside / name, Path.cwd() / name, beside.parent / name, *packaged):
        if found.is_file():
            here = Path.cwd()
            return (found.relative_to(here) if found.is_relative_to(here) else found), []
    try:
        source, _ = locate(name)
    except RecipeError as error:
        [problem] = error.problems
        return None, [at(tree, ("recipe",), problem)]
    if not source.is_file():
        hint = "Write its path from this file or from the current folder."
        problem = Problem("missing_file", "", f"there is no recipe {name!r}", hint)
        return None, [at(tree, ("recipe",), problem)]
    return source, []


def _text(tree: Node, key: str) -> str | None:
    node = tree.items.get(key)
    return node.value if node is not None and isinstance(node.value, str) else None


def _space(tree: Node, fields: SweepFields) -> tuple[Space | None, list[Problem]]:
    entries = [Entry.of(path, each) for path, each in fields.space.items()]
    problems = [p for path, each in fields.space.items() for p in rules.entry(tree, path, each)]
    problems += rules.conditions(tree, entries)
    if problems:
        return None, problems
    try:
        return Space.of(entries), []
    except ValueError as error:
        hint = "Let one of them be asked always."
        problem = Problem("bad_condition", "", "its conditions lead in a circle", hint)
        return None, [at(tree, ("space", str(error), "when"), problem)]
