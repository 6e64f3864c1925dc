"""``plan``: memory and time of a recipe, before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agentrecipes.cli.arguments import (
    Json,
    Parts,
    Profile,
    RecipeWords,
    find_recipe,
    one_name,
    open_recipe,
    split_words,
)
from agentrecipes.cli.output import emit_json, table

if TYPE_CHECKING:
    from agentrecipes.recipe.load import Recipe

Memory = Annotated[
    float | None,
    typer.Option(min=0.0, metavar="GIB", help="Plan for a device with so much memory."),
]
GIB = 2**30


def plan(
    words: RecipeWords,
    memory: Memory = None,
    profile: Profile = None,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Show what a recipe needs, memory by term and time, before anything is loaded."""
    from agentrecipes.analysis.plan.plan import plan as make
    from agentrecipes.recipe.load import load

    recipe = open_recipe(words, profile, parts=parts)
    split = split_words(words)
    path = find_recipe(one_name(split, "recipe"))

    def reload(changes: Sequence[str]) -> Recipe:
        return load(path, [*split.overrides, *changes], profile=profile)

    room = None if memory is None else int(memory * GIB)
    found = make(recipe, reload, device_bytes=room)
    if as_json:
        emit_json(found)
    else:
        typer.echo(plan_text(found))


def plan_text(found: Mapping[str, Any]) -> str:
    """The plan for reading."""
    needed = found["memory"]
    rows = [[term["name"], f"{term['bytes'] / GIB:.3f}"] for term in needed["terms"]]
    rows.append(["together", f"{needed['total_bytes'] / GIB:.3f}"])
    verdict = "fits" if found["fits"] else "does not fit"
    largest = max(needed["terms"], key=lambda term: term["bytes"])["name"]
    lines = [
        f"memory at the peak, on each device (stage {found['stage']}, {found['peak']})",
        table(("term", "GiB"), rows),
        "",
        f"{verdict}: {found['available_bytes'] / GIB:.2f} GiB on {found['device']}",
    ]
    if not found["fits"]:
        lines += [f"largest: {largest}", *(f"instead: {each}" for each in found["suggestions"])]
    lines += ["", "at most, in an iteration (or an optimizer step of a stage that reads data)"]
    timed = [[s["name"], s["tokens"], f"{s['seconds']:.3g}"] for s in found["stages"]]
    lines += [table(("stage", "tokens", "seconds"), timed), "", f"rests on {found['basis']}"]
    return "\n".join(lines)
