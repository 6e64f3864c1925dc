"""A finished, stopped or killed run as its files tell it; nothing heavy is imported."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.errors import AgentRecipesError
from agentrecipes.recipe import source
from agentrecipes.recipe.positions import plain
from agentrecipes.tracking import manifest
from agentrecipes.tracking.columns import schema

if TYPE_CHECKING:
    import pyarrow as pa

TRIES = 20  # a file can vanish between listing and reading when a stage ends and is compacted


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run's folder with what its small files say.

    Example: ``StoredRun(Path("runs/a"), "finished", {"name": "rag_r1", …}, {"inputs": {…}})``.
    """

    folder: Path
    status: str  # of the summary; "unfinished" where there is none
    recipe: Mapping[str, Any]  # recipe.yaml as plain data
    lock: Mapping[str, Any]  # recipe.lock; empty where the run was killed before it

    @property
    def name(self) -> str:
        return self.folder.resolve().name

    @property
    def stages(self) -> tuple[str, ...]:
        """The names of its stages in their order."""
        return tuple(str(stage["name"]) for stage in self.recipe.get("stages") or ())


def open_run(folder: Path) -> StoredRun:
    """What a run's folder says of itself.

    Raises:
        RecipeError: its recipe cannot be read.
        AgentRecipesError: its summary or its lock is damaged.
    """
    path = folder / "recipe.yaml"
    recipe = plain(source.read(path, str(path)))
    summary = _json(folder / "summary.json")
    status = str(summary.get("status", "unfinished"))
    return StoredRun(folder, status, recipe, _json(folder / "recipe.lock"))


def read_table(
    folder: Path, table: str, columns: Sequence[str] | None = None, *, split: str | None = None
) -> pa.Table:
    """The rows of one of a run's tables, with `columns` (default all) and of `split` alone.

    Raises:
        AgentRecipesError: a file is damaged; the message names it.
    """
    for _ in range(TRIES):
        try:
            return _read(folder / "tables", table, columns=columns, split=split)
        except FileNotFoundError:
            continue
    raise AgentRecipesError(f"the tables in {folder} keep changing; try again")


def _read(
    tables: Path, table: str, *, columns: Sequence[str] | None, split: str | None
) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    wanted = schema(table)
    names = list(columns) if columns is not None else wanted.names
    parts = [pa.schema([wanted.field(name) for name in names]).empty_table()]
    where = None if split is None else [("split", "=", split)]
    try:
        files = manifest.current(tables / table)
    except ValueError as error:
        raise AgentRecipesError(f"{error}; the table's manifest is damaged") from None
    for path in files:
        try:
            found = pq.read_table(path, columns=names, filters=where, partitioning=None)
            parts.append(found.select(names).cast(parts[0].schema))
        except FileNotFoundError:
            raise
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise AgentRecipesError(f"{path}: the file is damaged ({reason[:200]})") from None
    return pa.concat_tables(parts)


def _json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise AgentRecipesError(f"{path}: cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise AgentRecipesError(f"{path}: holds no JSON object")
    return data
