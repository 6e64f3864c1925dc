"""The door of this package: a path becomes a `Recipe`, or every problem that it has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from pydantic import ValidationError

from agentrecipes import schedules
from agentrecipes.errors import Problem, RecipeError, of_problems
from agentrecipes.recipe.draft import OWN_KEYS, RECIPE, Draft
from agentrecipes.recipe.layers import Layered, layered
from agentrecipes.recipe.merge import spell_out
from agentrecipes.recipe.origins import labels, unused
from agentrecipes.recipe.positions import Node, Place, lookup, plain, put, split, written
from agentrecipes.recipe.problems import from_pydantic, spot
from agentrecipes.recipe.resolve import Resolved, at_iteration, stages_of
from agentrecipes.recipe.rules import stage_problems, told_once
from agentrecipes.recipe.schema import RecipeFields, Stage
from agentrecipes.recipe.values import Paths, anchored, leaves, typed_form, value_problems


@dataclass(frozen=True, slots=True)
class Recipe:
    """One experiment, resolved: nothing in it depends on other files' fields any more.

    Two recipes are equal if they say the same, wherever it was written.
    """

    data: Mapping[str, Any]  # what recipe.yaml holds: every field spelled out, schedules kept
    fields: RecipeFields = field(compare=False, repr=False)  # typed, schedules at iteration 0
    origin: Mapping[str, str] = field(compare=False, repr=False)  # dotted path → who wrote it
    profile: str | None = field(compare=False)
    files: tuple[Path, ...] = field(compare=False)  # every recipe file that was read
    folder: Path = field(compare=False)  # where relative paths in `data` start

    def __hash__(self) -> int:
        return hash(self.hash)

    @property
    def name(self) -> str:
        return self.fields.name

    @property
    def seed(self) -> int:
        return self.fields.seed

    @property
    def stages(self) -> tuple[Stage, ...]:
        """The stages with their schedules at iteration 0."""
        return self.fields.stages

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of the resolved form without the seed: the seeds of a recipe share it."""
        data = {key: value for key, value in self.data.items() if key != "seed"}
        text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def stage(self, index: int, iteration: int = 0) -> Stage:
        """A stage with plain values for one iteration; the same object where nothing changes."""
        data = self.data["stages"][index]
        if iteration == 0 or next(schedules.find(data), None) is None:
            return self.fields.stages[index]
        return at_iteration(data, iteration, self.folder)

    def to_yaml(self) -> str:
        """The resolved recipe as YAML that `load` reads back as an equal recipe."""
        return OmegaConf.to_yaml(OmegaConf.create(dict(self.data)))


def load(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    profile: str | None = None,
    folder: Path | None = None,
) -> Recipe:
    """The recipe in a file, or the shipped one of a bare name, with its overrides.

    `folder` is where relative paths start, for a resolved recipe that was moved into a run's
    folder; it is trusted, and may lead anywhere.

    Raises:
        RecipeError: with every problem at once.
        MissingExtra: nothing is wrong but that an extra is not installed.
    """
    recipe, problems = check(path, overrides, profile=profile, folder=folder)
    errors = [problem for problem in problems if problem.severity == "error"]
    if recipe is None or errors:
        raise of_problems(errors)
    return recipe


def check(
    path: str | Path,
    overrides: Sequence[str] = (),
    *,
    profile: str | None = None,
    folder: Path | None = None,
) -> tuple[Recipe | None, list[Problem]]:
    """The recipe, or None where there are errors; and all problems, warnings too."""
    try:
        read = layered(path, overrides, profile)
    except RecipeError as error:
        return None, list(error.problems)
    paths = Paths(folder or read.folder, trusted=folder is not None)
    stages = stages_of(read.draft, paths)
    own = _own_tree(read.draft, paths)
    problems = list(read.draft.problems)
    problems += [problem for stage in stages for problem in stage.problems]
    problems += [problem for stage in stages for problem in stage_problems(stage)]
    fields, more = _own_fields(own, stages, paths)
    problems += more
    if fields is not None and folder is None:  # a stored recipe's model may have moved since
        problems += _model_problems(fields, own)
    trees = [own, *(stage.tree for stage in stages)]
    problems += unused(read.overrides, trees, known=problems)
    problems = told_once([_with_file(problem, read) for problem in problems])
    if fields is None or any(problem.severity == "error" for problem in problems):
        return None, problems
    return _recipe(read, fields, (own, stages), profile=profile, paths=paths), problems


def _with_file(problem: Problem, read: Layered) -> Problem:
    """A problem of the whole recipe stands at the top of its file."""
    if problem.file is not None or "(in the override" in problem.message:
        return problem
    if problem.code in ("bad_override", "no_effect"):
        return problem
    return problem.at(read.shown, 1, 1)


def _own_tree(draft: Draft, paths: Paths) -> Node:
    """What belongs to the recipe and not to its stages."""
    entries = {key: node for key, node in draft.top.items() if key in OWN_KEYS}
    tree = spell_out(Node(entries, Place("top level")), RECIPE)
    return anchored(tree, leaves(plain(tree), RECIPE), paths)


def _model_problems(fields: RecipeFields, tree: Node) -> Iterator[Problem]:
    """What the model says of itself beside the stages; `tree` is the recipe without them."""
    for stage in fields.stages:
        for problem in fields.model.rules(stage):
            inside = split(problem.path) if problem.path else ()
            yield spot(tree, RECIPE, ("model", *inside)).problem(problem)


def _own_fields(
    tree: Node, stages: Sequence[Resolved], paths: Paths
) -> tuple[RecipeFields | None, list[Problem]]:
    problems = []
    for loc, _ in list(schedules.find(plain(tree))):
        at = spot(tree, RECIPE, loc)
        found = "a schedule cannot stand here: the value must be the same in all iterations"
        problems.append(at.problem(Problem("bad_schedule", "", found, "Write one value.")))
        tree = put(tree, loc, None)
    data = plain(tree)
    for leaf, problem in value_problems(tree, leaves(data, RECIPE), paths):
        problems.append(spot(tree, RECIPE, leaf.loc).problem(problem))
    typed, _ = typed_form(data, RECIPE, paths.folder)
    built = tuple(stage.stage for stage in stages if stage.stage is not None)
    try:
        fields = RecipeFields.model_validate({**typed, "stages": built})
    except ValidationError as error:
        places = {problem.path for problem in problems} | {""}  # "": no stage could be built
        wrong = from_pydantic(error, tree, RECIPE)
        return None, problems + [problem for problem in wrong if problem.path not in places]
    return fields, problems


def _recipe(
    read: Layered,
    fields: RecipeFields,
    trees: tuple[Node, Sequence[Resolved]],
    *,
    profile: str | None,
    paths: Paths,
) -> Recipe:
    own, stages = trees
    raw = plain(own)
    _, changed = typed_form(raw, RECIPE, paths.folder)
    spelled = written({**fields.dump(), "stages": []}, Place("recipe"))
    for loc in changed:
        spelled = put(spelled, loc, lookup(own, loc))
    data = {**plain(spelled), "stages": [stage.data for stage in stages]}
    origin = labels(data, own, {stage.name: stage.tree for stage in stages})
    return Recipe(data, fields, origin, profile, read.files, paths.folder)
