"""``curriculum``: which tasks come when, without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    Profile,
    RecipeWords,
    RunsDir,
    find_run,
    open_recipe,
)
from agentrecipes.cli.curve import curve, strip
from agentrecipes.cli.output import emit_json, table
from agentrecipes.cli.play import StageName, stage_of
from agentrecipes.errors import RecipeError

if TYPE_CHECKING:
    from agentrecipes.analysis.success_rates import Rates
    from agentrecipes.recipe.load import Recipe
    from agentrecipes.recipe.schema import Stage
    from agentrecipes.records import Task

Iterations = Annotated[
    int | None, typer.Option(min=1, help="How many are previewed; default: the stage's.")
]
RatesFrom = Annotated[
    str,
    typer.Option(
        "--rates",
        metavar="FILE",
        help="Success rates: [b]simulated[/b], a JSONL file of task or type and rate, or a run.",
    ),
]
By = Annotated[str, typer.Option(metavar="FIELD", help="The task field that tells kinds apart.")]
ROWS = 10  # of the table; longer previews are shown in blocks
WIDTH = 60  # columns of the plot


def curriculum(  # noqa: PLR0913 - a command's parameters are its options
    words: RecipeWords,
    iterations: Iterations = None,
    stage: StageName = None,
    rates: RatesFrom = "simulated",
    by: By = "type",
    profile: Profile = None,
    parts: Parts = None,
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Preview which tasks a recipe's curriculum picks when, without a model."""
    from agentrecipes.analysis.preview import preview

    recipe = open_recipe(words, profile, parts=parts)
    chosen = collecting_stage(recipe, stage)
    index = [each.name for each in recipe.stages].index(chosen.name)
    known = rates_of(rates, chosen.environment.tasks("train"), runs_dir)
    length = iterations or chosen.iterations or 1
    made = preview(partial(recipe.stage, index), known, iterations=length, seed=recipe.seed)
    told = [
        {
            "iteration": drawn.iteration,
            "tasks": len(drawn.tasks),
            "by": drawn.shares(by),
            "expected_success": drawn.expected_success,
        }
        for drawn in made.iterations
    ]
    name = chosen.curriculum.part_name
    if as_json:
        facts = {"stage": chosen.name, "curriculum": name, "rates": known.source}
        emit_json({**facts, "iterations": told, "stopped": made.stopped or None})
        return
    head = f"{recipe.name}, stage {chosen.name}: {name}, {chosen.rollout.tasks} tasks an iteration"
    typer.echo("\n".join([head, f"success rates: {known.source}", "", *shown(told, by)]))
    if made.stopped:
        typer.echo(f"\nstops at {made.stopped}")


def collecting_stage(recipe: Recipe, name: str | None) -> Stage:
    """The named stage, or the last one that collects.

    Raises:
        RecipeError: there is none, or its algorithm reads data, where nothing is picked.
    """
    collecting = [each for each in recipe.stages if not each.algorithm.needs.demonstrations]
    chosen = stage_of(recipe, name or (collecting[-1].name if collecting else None))
    if chosen.algorithm.needs.demonstrations:
        found = f"stage {chosen.name!r} picks no tasks: {chosen.algorithm.part_name} reads data"
        named = " or ".join(repr(each.name) for each in collecting)
        hint = f"Name {named}." if named else "Add a stage that collects, with `iterations`."
        raise RecipeError.about("no_curriculum", found, hint)
    return chosen


def rates_of(given: str, tasks: Sequence[Task], runs_dir: Path | None) -> Rates:
    """The rates that ``--rates`` names.

    Raises:
        RecipeError: it is neither ``simulated`` nor a file nor a run, or has nothing on the tasks.
    """
    from agentrecipes.analysis.success_rates import Simulated, from_file, from_run

    if given == "simulated":
        return Simulated.of(tasks)
    if Path(given).is_file() or given.endswith((".jsonl", ".jsonl.gz")):
        return from_file(Path(given), tasks)
    return from_run(find_run(given, runs_dir), tasks)


def shown(told: Sequence[Mapping[str, Any]], by: str) -> list[str]:
    """A table in blocks of iterations, a line of columns for each kind, and the success curve."""
    if not told:
        return []
    kinds = sorted({kind for one in told for kind in one["by"]})
    names = {kind: kind or f"no {by}" for kind in kinds}
    size = -(-len(told) // ROWS)
    rows = []
    for first in range(0, len(told), size):
        block = told[first : first + size]
        label = f"{first}-{first + len(block) - 1}" if len(block) > 1 else str(first)
        means = [_mean([one["by"].get(kind, 0.0) for one in block]) for kind in kinds]
        rows.append([label, *means, _mean([one["expected_success"] for one in block])])
    rounded = [[row[0], *(f"{value:.2f}" for value in row[1:])] for row in rows]
    lines = [table(("iteration", *names.values(), "success"), rounded), ""]
    shares = {kind: [one["by"].get(kind, 0.0) for one in told] for kind in kinds}
    top = max(max(values) for values in shares.values())
    margin = max(map(len, names.values()))
    lines.append(f"share of tasks by {by}, up to {top:.2f}")
    for kind, values in shares.items():
        picture = strip(values, top=top, width=WIDTH)
        lines.append(f"{names[kind]:<{margin}} │{picture}│")
    points = [(one["iteration"], one["expected_success"]) for one in told]
    plot = curve(points, title="expected success of the picked tasks", height=6)
    return [*lines, "", plot] if plot else lines


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
