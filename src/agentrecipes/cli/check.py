"""``check``: validate recipes, all problems at once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    Profile,
    RecipesWords,
    add_parts,
    find_recipe,
    split_words,
)
from agentrecipes.cli.output import emit_json, note
from agentrecipes.components import suggest
from agentrecipes.errors import Problem, RecipeError, of_problems

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe

Rewards = Annotated[
    bool, typer.Option("--rewards", help="Also score the recipe's own examples ([b]tests[/b]).")
]
TOLERANCE = 1e-6  # between a part's value and what an example expects


def check(
    words: RecipesWords,
    profile: Profile = None,
    rewards: Rewards = False,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Validate recipes; all problems at once, each with its place and what to write instead."""
    split = split_words(words)
    if not split.names:
        raise RecipeError("check: no recipe was given")
    add_parts(parts)
    problems: list[Problem] = []
    hashes: dict[str, str | None] = {}
    for name in split.names:
        recipe, found = _check_one(name, split.overrides, profile=profile, rewards=rewards)
        hashes[name] = recipe.hash if recipe is not None else None
        problems += found
        _say(name, recipe, found=found, quiet=as_json)
    errors = [problem for problem in problems if problem.severity == "error"]
    ok = not errors
    if as_json:
        recipe_hash = next(iter(hashes.values())) if len(hashes) == 1 else None
        emit_json(
            {
                "ok": ok,
                "recipe_hash": recipe_hash,
                "problems": [problem.as_dict() for problem in problems],
                "recipes": [{"recipe": key, "recipe_hash": value} for key, value in hashes.items()],
            }
        )
    raise typer.Exit(0 if ok else of_problems(errors).exit_code)


def _check_one(
    name: str, overrides: tuple[str, ...], *, profile: str | None, rewards: bool
) -> tuple[Recipe | None, list[Problem]]:
    from agentrecipes.recipe.load import check as check_recipe

    try:
        path = find_recipe(name)
    except RecipeError as error:
        return None, list(error.problems)
    recipe, problems = check_recipe(path, overrides, profile=profile)
    if recipe is not None and not any(problem.severity == "error" for problem in problems):
        from agentrecipes.analysis.plan.plan import shortage

        short = shortage(recipe)
        problems = [*problems, *([short] if short is not None else [])]
    if recipe is not None and rewards:
        problems = [*problems, *reward_problems(recipe, path)]
    return recipe, list(problems)


def _say(name: str, recipe: Recipe | None, *, found: list[Problem], quiet: bool) -> None:
    for problem in found:
        note(f"{problem.severity}: {problem}")
    if quiet or recipe is None or any(problem.severity == "error" for problem in found):
        return
    stages = ", ".join(stage.name for stage in recipe.fields.stages)
    typer.echo(f"ok: {name} ({stages}) {recipe.hash[:12]}")


def reward_problems(recipe: Recipe, path: Path) -> list[Problem]:
    """What the recipe's examples expect of its rewards and do not get, each with its place."""
    from agentrecipes.rollout.score import read_transcripts, score_in

    problems: list[Problem] = []
    stage = recipe.stage(len(recipe.fields.stages) - 1, 0)
    for index, example in enumerate(recipe.fields.tests):
        line = {"id": f"tests[{index}]", "task": example.task, "turns": list(example.turns)}
        try:
            [(_, view)] = read_transcripts([line], stage.environment)
        except RecipeError as error:
            for fault in error.problems:
                found = Problem("reward_test", f"tests[{index}].turns", fault.message)
                problems.append(_placed(found, recipe, path))
            continue
        [scores] = score_in(stage, [view])
        got = {"total": scores.total, **scores.parts}
        why = f" ({'; '.join(scores.problems)})" if scores.problems else ""
        for part, expected in example.expect.items():
            hint = ""
            if part not in got:
                message = f"no reward of the last stage is called {part!r}"
                hint = suggest(part, got)
            elif not _equal(got[part], expected):
                null = why if got[part] is None else ""
                message = f"{part} is {got[part]!r}, but {expected!r} was expected{null}"
            else:
                continue
            found = Problem("reward_test", f"tests[{index}].expect.{part}", message, hint)
            problems.append(_placed(found, recipe, path))
    return problems


def _placed(problem: Problem, recipe: Recipe, path: Path) -> Problem:
    """The problem with the file and line in which its example stands."""
    head = problem.path
    while head:
        within = [label for key, label in recipe.origin.items() if key.startswith(head)]
        label = recipe.origin.get(head) or next(iter(within), "")
        file, _, line = label.rpartition(":")
        if line.isdigit():
            named = [str(each) for each in recipe.files if str(each).endswith(file)]
            shown = str(path) if str(path).endswith(file) else next(iter(named), file)
            return problem.at(shown, int(line), None)
        head = head.rpartition(".")[0]
    return problem.at(str(path), None, None)


def _equal(got: float | None, expected: float | None) -> bool:
    if got is None or expected is None:
        return got is expected
    return math.isclose(got, expected, rel_tol=0.0, abs_tol=TOLERANCE)
