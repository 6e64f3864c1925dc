"""``runs`` and ``query``: what has run, and one SELECT over all of it."""

from __future__ import annotations

import csv
import io
import json
import sys
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agentrecipes.cli.arguments import Json, RunsDir, runs_folder
from agentrecipes.cli.output import emit_json, plain_json, table
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
    typer.Option("--format", help="How rows are written to stdout."),
]


def runs(runs_dir: RunsDir = None, as_json: Json = False) -> None:
    """List the runs, newest first."""
    from agentrecipes.analysis.runs import runs as list_runs

    rows = [dict(row) for row in list_runs(runs_folder(runs_dir))]
    if as_json:
        emit_json({"runs": rows})
    elif not rows:
        typer.echo("no runs yet")
    else:
        columns = list(rows[0])
        typer.echo(table(columns, ([row.get(key) for key in columns] for row in rows)))


def query(
    sql: Sql = None,
    as_format: Format = "table",
    runs_dir: RunsDir = None,
    as_json: Json = False,
) -> None:
    """Ask one SELECT, or a named query, over all runs; anything else is refused."""
    from agentrecipes.analysis import query as door

    if sql is None:
        _names(as_json)
        return
    result = door.query(sql, runs_folder(runs_dir))
    if as_json:
        rows = [list(row) for row in result.rows]
        emit_json({"columns": list(result.columns), "rows": rows, "seconds": result.seconds})
    elif as_format == "parquet":
        _write_parquet(result)
    else:
        typer.echo(written(result, as_format))


def _names(as_json: bool) -> None:
    from agentrecipes.analysis.query import list_queries

    named = dict(list_queries())
    if as_json:
        emit_json({"queries": named})
    else:
        typer.echo(table(("query", "what it shows"), named.items()))


def written(result: Result, as_format: str) -> str:
    """The rows as a text table, CSV, or a JSON array of objects."""
    if as_format == "json":
        rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
        return json.dumps(plain_json(rows), ensure_ascii=False)
    if as_format == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(result.columns)
        writer.writerows(result.rows)
        return text.getvalue().rstrip("\n")
    return table(result.columns, result.rows)


def _write_parquet(result: Result) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    if sys.stdout.isatty():
        raise RecipeError("--format parquet: it is binary. Send it to a file: > rows.parquet")
    columns = zip(*result.rows, strict=True) if result.rows else ((),) * len(result.columns)
    data = {name: list(column) for name, column in zip(result.columns, columns, strict=True)}
    buffer = pa.BufferOutputStream()
    parquet.write_table(pa.table(data), buffer, compression="zstd")
    sys.stdout.buffer.write(buffer.getvalue())
