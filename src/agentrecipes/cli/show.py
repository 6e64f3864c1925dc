"""``show``: the resolved recipe, stage by stage, with where each value came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import typer

from agentrecipes.cli.arguments import Json, Parts, Profile, RecipeWords, open_recipe
from agentrecipes.cli.output import emit_json


def show(
    words: RecipeWords,
    profile: Profile = None,
    parts: Parts = None,
    as_json: Json = False,
) -> None:
    """Show the resolved recipe, stage by stage, and where each value came from."""
    recipe = open_recipe(words, profile, parts=parts)
    if as_json:
        emit_json({"recipe": recipe.data, "origin": recipe.origin, "recipe_hash": recipe.hash})
        return
    typer.echo(f"{recipe.name}  seed {recipe.seed}  {recipe.hash}")
    top = {key: value for key, value in recipe.data.items() if key != "stages"}
    typer.echo(section("recipe", top, origin=recipe.origin, prefix=""))
    for stage in recipe.data["stages"]:
        prefix = f"stages.{stage['name']}."
        typer.echo(section(f"stage {stage['name']}", stage, origin=recipe.origin, prefix=prefix))


def section(title: str, data: Mapping[str, Any], *, origin: Mapping[str, str], prefix: str) -> str:
    """One line per value: dotted path, value, where it came from."""
    rows = [(path, _value(value)) for path, value in leaves(data)]
    width = max((len(path) for path, _ in rows), default=0)
    span = max((min(len(value), 40) for _, value in rows), default=0)
    lines = [f"\n{title}"]
    for path, value in rows:
        source = origin.get(prefix + path, "")
        lines.append(f"  {path:{width}}  {value:{span}}  {source}".rstrip())
    return "\n".join(lines)


def leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted path and value of everything that is no mapping with keys; list entries as ``[i]``."""
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from leaves(value, f"{path}.{key}" if path else str(key))
    elif isinstance(data, list) and any(isinstance(item, Mapping) for item in data):
        for index, item in enumerate(data):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, data


def _value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        lines = value.splitlines()
        return value if len(lines) <= 1 else f"{lines[0]} … ({len(lines)} lines)"
    return str(value)
