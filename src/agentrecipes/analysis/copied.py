"""A copy of many runs' files of one table: one file, and an index that says what it was made of.

Rows are copied under the names of their runs' folders.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.tracking import replacing
from agentrecipes.tracking.columns import COLUMNS, schema

if TYPE_CHECKING:
    import pyarrow as pa

FOLDER = ".gathered"
VERSION = 2  # of what a copy holds
BATCH_ROWS = 16 * 32_768  # held in memory, and written at once
GROUP_ROWS = 32_768  # of a row group: a question to one run reads the groups that hold it alone

Sizes = list[list[Any]]
"""[name, bytes, nanoseconds of its last change] of each file of a folder."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One file made of many, and what it was made of."""

    path: str
    folders: Mapping[str, tuple[int, Sizes]]  # folder → time of its last change, its files
    left: frozenset[str]  # folders that were looked at and cannot be copied


def read(index: Path) -> Copy | None:
    """The copy that an index speaks of; None where one of the two is missing or not whole."""
    path = index.with_suffix(".parquet")
    try:
        told = json.loads(index.read_bytes())
        root = index.parent.parent
        folders = {f"{root}/{folder}": (at, files) for folder, (at, files) in told["made"].items()}
        left = frozenset(f"{root}/{folder}" for folder in told["left"])
        known = told["version"] == VERSION and not path.is_symlink()
        is_whole = known and path.stat().st_size == told["bytes"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Copy(str(path), folders, left) if is_whole else None


def written(root: Path, table: str, sizes: Mapping[str, tuple[int, Sizes]]) -> Copy:
    """Write the copy and, once it is in its place, its index.

    Raises:
        OSError: the disk is full or the folder cannot be written.
    """
    names = {folder: folder.removeprefix(f"{root}/") for folder in sizes}
    told = json.dumps({names[folder]: each for folder, each in sizes.items()}, sort_keys=True)
    digest = hashlib.sha256(told.encode()).hexdigest()[:12]
    path = root / FOLDER / f"{table}-{digest}.parquet"
    left: list[str] = []
    with replacing.replacing(path) as partial:
        _write(partial, table, _tables(table, sizes, left))
        size = partial.stat().st_size
    made = {folder: each for folder, each in sizes.items() if folder not in left}
    index = {
        "version": VERSION,
        "bytes": size,
        "made": {names[folder]: each for folder, each in made.items()},
        "left": [names[folder] for folder in left],
    }
    replacing.write(path.with_suffix(".json"), json.dumps(index).encode())
    return Copy(str(path), made, frozenset(left))


def _tables(
    table: str, sizes: Mapping[str, tuple[int, Sizes]], left: list[str]
) -> Iterator[pa.Table]:
    """The rows of each folder; one with a file that is not plainly this table goes to `left`."""
    import pyarrow as pa

    wanted = schema(table)
    for folder, (_, files) in sizes.items():
        try:
            rows = pa.concat_tables(
                [wanted.empty_table(), *(_rows(f"{folder}/{name}", wanted) for name, _, _ in files)]
            )
            yield _called(rows, folder.split("/")[-3])
        except (OSError, ValueError, pa.ArrowException):
            left.append(folder)  # whoever reads it says what is wrong with it


def _called(rows: pa.Table, run: str) -> pa.Table:
    """`rows` under the name of the folder that they lie in."""
    import pyarrow as pa

    index = rows.schema.get_field_index("run")
    names = pa.repeat(pa.scalar(run, rows.schema.field(index).type), rows.num_rows)
    return rows.set_column(index, rows.schema.field(index), names)


def _rows(path: str, wanted: pa.Schema) -> pa.Table:
    """A file's rows, with nulls in the columns that an older version did not write.

    Raises:
        ValueError: it has columns that this version does not know, or knows otherwise.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        own = file.schema_arrow
        if any(name not in wanted.names for name in own.names):
            raise ValueError(f"{path}: unknown columns")
        if any(own.field(name).type != wanted.field(name).type for name in own.names):
            raise ValueError(f"{path}: columns of other types")
        rows = file.read()
    columns = [
        rows[each.name] if each.name in own.names else pa.nulls(rows.num_rows, each.type)
        for each in wanted
    ]
    return pa.table(columns, schema=wanted)


def _write(path: Path, table: str, tables: Iterable[pa.Table]) -> None:
    """Write the tables' rows; metrics by name, since a question asks for one of many."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    order = [(name, "ascending") for name in ("name", "run", "stage", "step")]
    # Numbers that are seldom equal have no use for a dictionary: without one they read faster.
    names = [name for name, kind in COLUMNS[table].items() if kind in ("VARCHAR", "BIGINT")]

    def write(rows: pa.Table) -> None:
        rows = rows.sort_by(order) if table == "metrics" else rows
        writer.write_table(rows, row_group_size=GROUP_ROWS)

    waiting: list[pa.Table] = []
    with pq.ParquetWriter(path, schema(table), compression="zstd", use_dictionary=names) as writer:
        for each in tables:
            waiting.append(each)
            if sum(one.num_rows for one in waiting) >= BATCH_ROWS:
                write(pa.concat_tables(waiting))
                waiting = []
        write(pa.concat_tables([schema(table).empty_table(), *waiting]))
