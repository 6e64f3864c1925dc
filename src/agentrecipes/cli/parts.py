"""``list``: the parts that a recipe can name, with their fields."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from agentrecipes.cli.arguments import Json, Parts, add_parts
from agentrecipes.cli.fields import FieldLine, field_lines, is_part
from agentrecipes.cli.output import emit_json, table
from agentrecipes.components import FOLDER, find, names, suggest
from agentrecipes.errors import Problem, RecipeError

Kind = Annotated[
    str | None,
    typer.Argument(metavar="KIND", help="One kind, with every field.", show_default=False),
]


def parts(kind: Kind = None, parts: Parts = None, as_json: Json = False) -> None:
    """List the parts a recipe can name; of one kind, with their fields."""
    add_parts(parts)
    if kind is not None and kind not in FOLDER:
        hint = suggest(kind, FOLDER)
        raise RecipeError(
            [Problem("unknown_kind", "", f"no kind of part is called {kind!r}", hint)]
        )
    kinds = [kind] if kind is not None else sorted(FOLDER)
    found = [part_facts(each, name) for each in kinds for name in names(each)]
    if as_json:
        emit_json({"parts": found})
    elif kind is None:
        rows = [(part["kind"], part["name"], part["summary"]) for part in found]
        typer.echo(table(("kind", "name", "what it is"), rows))
    else:
        typer.echo("\n\n".join(_page(part) for part in found) or f"no {kind} is installed")


def part_facts(kind: str, name: str) -> dict[str, Any]:
    """What documentation says of a part: summary and fields."""
    cls = find(kind, name)
    return {
        "kind": kind,
        "name": name,
        "summary": summary(cls),
        "fields": [asdict(line) for line in field_lines(cls)],
    }


def summary(cls: type) -> str:
    """The first line of a class's docstring."""
    return (cls.__doc__ or "").strip().partition("\n")[0]


def _page(part: dict[str, Any]) -> str:
    lines = [f"{part['name']}: {part['summary']}"]
    rows = []
    for fields in part["fields"]:
        line = FieldLine(**fields)
        kind = f"{line.type} {line.limits}".strip()
        rows.append((f"  {line.name}", kind, default_text(line), line.meaning))
    if rows:
        lines.append(table(("  field", "type", "default", "meaning"), rows))
    return "\n".join(lines)


def default_text(line: FieldLine) -> str:
    """What stands where nothing is written, in one line; a part is told by its name alone."""
    if line.required:
        return "required"
    if isinstance(line.default, dict) and not is_part(line.type):
        return "its own defaults"
    return _written(line.default)


def _written(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict) and "name" in value:
        return str(value["name"])
    if isinstance(value, list):
        return f"[{', '.join(_written(item) for item in value)}]"
    return repr(value) if value == "" else str(value)
