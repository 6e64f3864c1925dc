"""One SELECT over all runs: views on their tables, nothing else readable, nothing writable.

The only door to DuckDB. Views: ``runs``, ``recipes`` (one row per dotted path), ``metrics``,
``evaluations``, ``trajectories``, ``turns``; their columns are in ``tracking/columns.py``. A run is
called as its folder is, whatever its rows say: one that was copied or renamed is not two in one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from agentrecipes.analysis import gathered
from agentrecipes.analysis.copied import FOLDER
from agentrecipes.components import suggest
from agentrecipes.errors import AgentRecipesError, RecipeError
from agentrecipes.tracking.columns import COLUMNS

if TYPE_CHECKING:
    import duckdb

NAMED = Path(__file__).parent / "queries"
TRIES = 20  # a file can vanish between listing and reading when a stage ends and is compacted
SELECTS = ("select", "with", "from", "values", "table", "(")
RUN = "string_split(filename, '/')[-4]"  # of <run>/tables/<table>/<file>: a run is its folder
COMMENTS = re.compile(r"\s+|--[^\n]*(\n|$)|/\*.*?\*/", re.DOTALL)
SETTINGS: dict[str, Any] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # or a table name could reach a Python variable
    "temp_directory": "",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a query found: ``Result(("run",), ("VARCHAR",), (("a",), ("b",)), 0.1)``."""

    columns: tuple[str, ...]
    types: tuple[str, ...]  # in DuckDB's words
    rows: tuple[tuple[Any, ...], ...]
    seconds: float
    truncated: bool = False  # there were more rows than asked for


def query(
    sql_or_name: str,
    runs_dir: Path,
    *,
    rows: int | None = None,
    limit_seconds: float | None = None,
    copying: Callable[[str, int], None] | None = None,
) -> Result:
    """Run one SELECT, or a named query, over all runs in `runs_dir`; nothing there, nothing found.

    `copying` is told the table and the number of runs before many runs' files are copied into one.

    Raises:
        RecipeError: it is not exactly one SELECT, or DuckDB refuses it.
        AgentRecipesError: a table's file is damaged, or the time is over; the message names which.
    """
    started = time.perf_counter()
    sql = _sql(sql_or_name)
    for _ in range(TRIES):
        files = {
            table: gathered.current(runs_dir, table, copying=copying) for table in _tables(sql)
        }
        try:
            columns, types, found = _run(sql, files, rows=rows, limit_seconds=limit_seconds)
        except _Vanished:
            continue
        cut = rows is not None and len(found) > rows
        shown = tuple(found[:rows] if cut else found)
        return Result(columns, types, shown, time.perf_counter() - started, truncated=cut)
    raise AgentRecipesError(f"the tables in {runs_dir} keep changing; try again")


def list_queries() -> dict[str, str]:
    """Name → what it shows, of every named query."""
    return {path.stem: _summary(path) for path in sorted(NAMED.glob("*.sql"))}


class _Vanished(Exception):
    """A file was listed and is gone."""


def _summary(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().removeprefix("--").strip()


def _sql(text: str) -> str:
    name = text.strip()
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        return text
    path = NAMED / f"{name}.sql"
    if not path.is_file():
        hint = suggest(name, list_queries())
        message = f"no query is called {name!r}"
        raise RecipeError.about("unknown_query", message, hint)
    return path.read_text(encoding="utf-8")


def _check(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Refuse all that is not exactly one SELECT, before any of it runs."""
    import duckdb

    try:
        statements = connection.extract_statements(sql)
    except duckdb.Error as error:
        raise _refused(str(error)) from None
    if len(statements) != 1:
        raise _refused(f"expected exactly one SELECT, but got {len(statements)} statements")
    start = sql
    while match := COMMENTS.match(start):
        start = start[match.end() :]
    kind = str(statements[0].type).rpartition(".")[2]
    if kind != "SELECT" or not start.lower().startswith(SELECTS):
        word = start.split(maxsplit=1)[0].upper()
        raise _refused(f"only SELECT is allowed, but this is {word}")


def _refused(reason: str) -> RecipeError:
    text = " ".join(reason.split("\n\n")[0].split())
    hint = "Tables: " + ", ".join(COLUMNS) + "; named queries: " + ", ".join(list_queries()) + "."
    return RecipeError.about("query", text.rstrip("."), hint, path="query")


def _tables(sql: str) -> list[str]:
    """The tables that `sql` may speak of; a word in a text or comment costs a look, no more."""
    words = set(re.findall(r"\w+", sql.lower()))
    return [table for table in COLUMNS if table in words]


@contextmanager
def _locked(sql: str, files: Sequence[Path]) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection in memory for `sql` alone that can open `files` and nothing else."""
    import duckdb

    connection = duckdb.connect(":memory:", config=SETTINGS)
    try:
        _check(connection, sql)
        if files:
            connection.execute(f"SET allowed_paths = [{_listed(files)}]")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


def _run(
    sql: str,
    files: Mapping[str, Sequence[Path]],
    *,
    rows: int | None,
    limit_seconds: float | None,
) -> tuple[tuple[str, ...], tuple[str, ...], list[tuple[Any, ...]]]:
    import duckdb

    every = [path for paths in files.values() for path in paths]
    with _locked(sql, every) as connection, _time_limit(connection, limit_seconds):
        try:
            # Matching columns by name reads every file twice; tables of several versions need it.
            try:
                cursor = _execute(connection, sql, files, by_name=False)
                found = cursor.fetchall() if rows is None else cursor.fetchmany(rows + 1)
            except duckdb.InterruptException:
                raise
            except duckdb.Error:
                cursor = _execute(connection, sql, files, by_name=True)
                found = cursor.fetchall() if rows is None else cursor.fetchmany(rows + 1)
        except duckdb.InterruptException:
            text = f"the query was stopped after {limit_seconds} seconds"
            raise AgentRecipesError(text) from None
        except duckdb.Error as error:
            raise _explained(error, every) from None
        described = [(str(column[0]), str(column[1])) for column in cursor.description or []]
    return tuple(name for name, _ in described), tuple(kind for _, kind in described), found


def _execute(
    connection: duckdb.DuckDBPyConnection,
    sql: str,
    files: Mapping[str, Sequence[Path]],
    *,
    by_name: bool,
) -> duckdb.DuckDBPyConnection:
    for table in COLUMNS:
        connection.execute(_view(table, files.get(table, ()), by_name))
    return connection.execute(sql)


@contextmanager
def _time_limit(connection: duckdb.DuckDBPyConnection, seconds: float | None) -> Iterator[None]:
    timer = Timer(seconds, connection.interrupt) if seconds is not None else None
    if timer:
        timer.start()
    try:
        yield
    finally:
        if timer:
            timer.cancel()
            timer.join()


def _view(table: str, files: Sequence[Path], by_name: bool) -> str:
    if not files:
        columns = COLUMNS[table].items()
        empty = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in columns)
        return f"CREATE OR REPLACE VIEW {table} AS SELECT {empty} WHERE false"
    options = f"union_by_name = {str(by_name).lower()}, hive_partitioning = false"
    copies = [path for path in files if path.parent.name == FOLDER]
    own = [path for path in files if path.parent.name != FOLDER]
    parts = []
    if copies:
        parts.append(f"SELECT * FROM read_parquet([{_listed(copies)}], {options})")
    if own:
        source = f"read_parquet([{_listed(own)}], {options}, filename = true)"
        parts.append(f"SELECT * EXCLUDE (filename) REPLACE ({RUN} AS run) FROM {source}")
    return f"CREATE OR REPLACE VIEW {table} AS {' UNION ALL BY NAME '.join(parts)}"


def _listed(files: Sequence[Path]) -> str:
    return ", ".join("'" + str(path).replace("'", "''") + "'" for path in files)


def _explained(error: duckdb.Error, files: Sequence[Path]) -> Exception:
    """Whose fault it is: the query's, a damaged file's, or a compaction's that ended meanwhile."""
    import duckdb

    faults = (
        duckdb.ParserException,
        duckdb.BinderException,
        duckdb.CatalogException,
        duckdb.PermissionException,
    )
    if any(not path.exists() for path in files):
        return _Vanished()
    if isinstance(error, faults):
        return _refused(str(error))
    for path in files:
        if reason := _damage(path):
            return AgentRecipesError(f"{path}: the file is damaged ({reason}); remove it to go on")
    return _refused(str(error))


def _damage(path: Path) -> str | None:
    """Why the file cannot be read from end to end, or None."""
    import duckdb

    sql = f"SELECT bit_xor(hash(t)) FROM read_parquet([{_listed([path])}]) AS t"
    with _locked(sql, [path]) as connection:
        try:
            connection.execute(sql)
        except duckdb.Error as error:
            return " ".join(str(error).split("\n\n")[0].split())
    return None
