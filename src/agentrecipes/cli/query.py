"""``runs`` and ``query``: what has run, and one SELECT over all of it."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentrecipes.cli.arguments import Json, RunsDir, runs_folder
from agentrecipes.cli.output import emit_json, note, table
from agentrecipes.errors import RecipeError

if TYPE_CHECKING:
    from agentrecipes.analysis.query import Result

Sql = Annotated[
    str | None,
    typer.Argument(
        metavar="SQL|NAME",
        help="One SELECT, or the name of a stored query; without it the names are listed.",
        show_default=False,
    ),
]
Format = Annotated[
    Literal["table", "csv", "json", "parquet"],
    typer.Option("--format", help="How rows are written to stdout; json: an array of objects."),
]
COLUMNS = {  # of the list of runs, with DuckDB's types
    "run": "VARCHAR",
    "status": "VARCHAR",
    "metric": "VARCHAR",
    "value": "DOUBLE",
    "seed": "BIGINT",
    "profile": "VARCHAR",
    "wall_seconds": "DOUBLE",
    "recipe_hash": "VARCHAR",
    "dir": "VARCHAR",
}


def runs(runs_dir: RunsDir = None, as_format: Format = "table", as_json: Json = False) -> None:
    """List the runs, newest first."""
    result = listed(runs_folder(runs_dir))
    if not result.rows and as_format == "table" and not as_json:
        typer.echo("no runs yet")
    else:
        _print(result, as_format, as_json)


def listed(runs_dir: Path) -> Result:
    """The runs in a folder, newest first, as if they had been queried."""
    from agentrecipes.analysis.query import Result
    from agentrecipes.analysis.runs import runs as list_runs

    began = time.perf_counter()
    rows = tuple(tuple(run[key] for key in COLUMNS) for run in list_runs(runs_dir))
    return Result(tuple(COLUMNS), tuple(COLUMNS.values()), rows, time.perf_counter() - began)


def query(
    sql: Sql = None,
    as_format: Format = "table",
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Ask one SELECT, or a named query, over all runs; anything else is refused."""
    from agentrecipes.analysis import query as door

    if sql is not None:
        found = door.query(sql, runs_folder(runs_dir), copying=_copying)
        _print(found, as_format, as_json)
        return
    named = door.list_queries()
    if as_json:
        emit_json({"queries": named})
    else:
        typer.echo(table(("query", "what it shows"), named.items()))


def _print(result: Result, as_format: str, as_json: bool) -> None:
    from agentrecipes.analysis import formats

    if as_json:
        rows = [[formats.plain(value) for value in row] for row in result.rows]
        emit_json({"columns": list(result.columns), "rows": rows, "seconds": result.seconds})
    elif as_format == "parquet":
        if sys.stdout.isatty():
            raise RecipeError("--format parquet is binary: send it to a file, > rows.parquet")
        sys.stdout.buffer.write(formats.as_parquet(result))
    else:
        write = {"csv": formats.as_csv, "json": formats.as_json, "table": formats.as_table}
        typer.echo(write[as_format](result), nl=False)


def _copying(table: str, count: int) -> None:
    note(f"copying the {table} of {count:,} runs into one file, once, so that questions are quick")
