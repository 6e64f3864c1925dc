"""What commands print: results on stdout, everything else on stderr, errors in one line each."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

import typer

from agentrecipes.errors import AgentRecipesError, RecipeError


def emit_json(data: Mapping[str, Any]) -> None:
    """Print the one JSON object of ``--json``; numbers that JSON lacks become null."""
    typer.echo(json.dumps(plain_json(data), ensure_ascii=False, indent=2))


@contextmanager
def spared(as_json: bool) -> Iterator[None]:
    """Keep stdout for the object of ``--json``: what is printed meanwhile goes to stderr.

    Libraries print there, by themselves, from C and from processes that they start.
    """
    if not as_json:
        yield
        return
    sys.stdout.flush()
    with redirect_stdout(sys.stderr):
        own = os.dup(1)
        os.dup2(2, 1)
        try:
            yield
        finally:
            os.dup2(own, 1)
            os.close(own)


def plain_json(value: Any) -> Any:
    """A value as JSON can say it: mappings, lists, text, finite numbers, null."""
    if isinstance(value, Mapping):
        return {str(key): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def note(text: str) -> None:
    """Print a line for people, on stderr."""
    typer.echo(text, err=True)


def figure(value: Any) -> str:
    """A value in a table: four digits of a number, a dash for nothing."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Text columns under their names, numbers right-aligned; no colours, no cut-off."""
    body = [list(row) for row in rows]
    numeric = [
        any(_is_number(row[i]) for row in body)
        and all(_is_number(row[i]) or row[i] is None for row in body)
        for i in range(len(columns))
    ]
    cells = [list(columns), *([figure(value) for value in row] for row in body)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    lines = []
    for row in cells:
        line = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric, strict=True)
        ]
        lines.append("  ".join(line).rstrip())
    return "\n".join(lines)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def report_error(error: AgentRecipesError, as_json: bool) -> int:
    """Print an error, one line per problem; return the exit code."""
    if isinstance(error, RecipeError):
        for problem in error.problems:
            note(f"{problem.severity}: {problem}")
    else:
        note(f"error: {error}")
    if as_json:
        problems = error.problems if isinstance(error, RecipeError) else ()
        emit_json(
            {
                "ok": False,
                "error": str(error),
                "exit_code": error.exit_code,
                "problems": [problem.as_dict() for problem in problems],
            }
        )
    return error.exit_code


def report_usage(error: typer.TyperException, as_json: bool) -> int:
    """Print what is wrong with the command line itself; return the exit code."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "agentrecipes"
    message = error.format_message()
    if type(error).__name__ == "NoArgsIsHelpError":  # the help was asked for by saying nothing
        sys.stderr.write(f"{message}\n" if message else "")
        return error.exit_code
    end = "" if message.endswith(("?", ".")) else "."
    message = f"{path}: {message}{end} Try '{path} --help'."
    note(f"error: {message}")
    if as_json:
        emit_json({"ok": False, "error": message, "exit_code": error.exit_code, "problems": []})
    return error.exit_code
