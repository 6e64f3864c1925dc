"""``replay``: a run's rewards and advantages again, as they were or with other rewards."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    RunsDir,
    add_parts,
    find_run,
    one_name,
    split_words,
)
from agentrecipes.cli.output import emit_json, figure, note, table
from agentrecipes.cli.run import recipe_of
from agentrecipes.errors import Problem, RecipeError

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe

Words = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN [KEY=VALUE]",
        help="A run, then rewards or an algorithm instead of its own: [b]rewards[0].weight=2[/b].",
        show_default=False,
    ),
]
REPLAYED = ("rewards", "algorithm")  # what of a stage decides on rewards and advantages
INDEX = re.compile(r"\.(\d+)(?=[.\[]|$)")
SHOWN = 10  # pairs and sign changes in the text


def replay(
    words: Words, parts: Parts = None, runs_dir: RunsDir = None, as_json: Json = False
) -> None:
    """Compute a run's rewards and advantages again from its trajectories, without a model."""
    split = split_words(words)
    folder = find_run(one_name(split, "run"), runs_dir)
    add_parts(parts)
    recipe = recipe_of(folder)
    if split.overrides:
        recipe = recipe_of(folder, addressed(recipe, split.overrides))
    from agentrecipes.analysis.replay import replay as again
    from agentrecipes.analysis.stored import open_run

    found = again(open_run(folder), recipe)
    for line in notes(found):
        note(line)
    if as_json:
        emit_json(found)
    else:
        typer.echo(replay_text(found))


def addressed(recipe: Recipe, overrides: Sequence[str]) -> list[str]:
    """The overrides for a resolved recipe, whose stages hold all: one for each collecting stage.

    Paths may be written as `diff` prints them, ``rewards.0.weight``.

    Raises:
        RecipeError: one of them is neither of the rewards nor of the algorithm.
    """
    collecting = [stage.name for stage in recipe.stages if not stage.algorithm.needs.demonstrations]
    made, problems = [], []
    for override in overrides:
        key, _, value = override.partition("=")
        key = INDEX.sub(r"[\1]", key)
        field = re.split(r"[.\[]", key.split(".", 2)[-1] if key.startswith("stages.") else key)[0]
        if field not in REPLAYED:
            message = f"{key!r} decides on what is sampled or learned, and cannot be replayed"
            hint = "Change rewards or algorithm; for all else, start a new run."
            problems.append(Problem("not_replayed", key, message, hint))
        elif key.startswith("stages."):
            made.append(f"{key}={value}")
        else:
            made += [f"stages.{stage}.{key}={value}" for stage in collecting]
    if problems:
        raise RecipeError(problems)
    return made


def notes(found: Mapping[str, Any]) -> list[str]:
    """What the figures do not say, for people."""
    told = list(found["notes"])
    if found["status"] != "finished":
        told.append(f"{found['run']} is {found['status']}: replayed as far as it went")
    for left in found["not_replayed"]:
        count = len(left["iterations"])
        told.append(
            f"stage {left['stage']}, {count} iteration{'s' * (count > 1)}: the {left['what']} "
            f"cannot be replayed: {left['reason']}"
        )
    return told


def replay_text(found: Mapping[str, Any]) -> str:
    """The replay for reading."""
    verdict = "as stored" if found["identical"] else "not as stored"
    gap = found["max_advantage_gap"]
    blocks = [
        f"{found['run']}: {found['trajectories']} trajectories, {verdict}\n"
        f"largest gap of a reward     {figure(found['max_reward_gap'])}\n"
        f"largest gap of an advantage {'not replayed' if gap is None else figure(gap)}"
    ]
    pairs, signs = found["flipped_pairs"], found["sign_changes"]
    blocks.append(f"{len(pairs)} pairs swap their order")
    if pairs:
        columns = ("iteration", "task", "attempts", "before", "after")
        rows = [[_cell(pair[name]) for name in columns] for pair in pairs[:SHOWN]]
        blocks[-1] += f"\n{table(columns, rows)}{_more(pairs)}"
    blocks.append(f"{len(signs)} advantages change their sign")
    if signs:
        columns = ("iteration", "task", "attempt", "before", "after")
        rows = [[one[name] for name in columns] for one in signs[:SHOWN]]
        blocks[-1] += f"\n{table(columns, rows)}{_more(signs)}"
    return "\n\n".join(blocks)


def _cell(value: Any) -> Any:
    return ", ".join(map(figure, value)) if isinstance(value, list) else value


def _more(rows: Sequence[object]) -> str:
    return f"\n… and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
