"""Parquet files put in place in one step, and small ones made into one unnoticed by readers."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence, Set
from pathlib import Path
from typing import TYPE_CHECKING

from agentrecipes.tracking import manifest
from agentrecipes.tracking.replacing import replacing

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 50_000  # rows gathered in memory before they are written as one row group
LEVEL = 3  # of zstd


def place(data: pa.Table, path: Path) -> None:
    """Write one Parquet file under a temporary name, then rename it; equal tables give equal bytes.

    Raises:
        OSError: the disk is full or the folder cannot be written; what stood there stays.
    """
    import pyarrow.parquet as pq

    with replacing(path) as partial:
        pq.write_table(data, partial, compression="zstd", compression_level=LEVEL)


def forget(
    folder: Path, stage: str, *, schema: pa.Schema, gone: Callable[[Sequence[str]], bool]
) -> None:
    """Remove the stage's parts of which `gone` says so, by the fields of their names.

    Raises:
        OSError: the disk is full or the folder cannot be written; every row stays.
    """
    stem = manifest.field(stage)
    listed = manifest.read(folder)
    if any(
        gone(_fields(part)) for made in listed if _is_made(made, stem) for part, _ in listed[made]
    ):
        compact(folder, stage, schema=schema, gone=gone)
    for name in _fresh(folder, stem):
        if gone(_fields(name)):
            (folder / name).unlink()


def compact(
    folder: Path,
    stage: str,
    *,
    schema: pa.Schema,
    gone: Callable[[Sequence[str]], bool] = lambda fields: False,
) -> None:
    """Make one file of all the stage's files in `folder` but those that are gone; remove those.

    Crash safe: replacing the manifest is the one step that counts. Parts that were written again
    after an earlier compaction (by a resumed run) take the place of their old rows.
    """
    stem = manifest.field(stage)
    listed = manifest.read(folder)
    old = {name: parts for name, parts in listed.items() if _is_made(name, stem)}
    fresh, parts = _fresh(folder, stem), {part for made in old.values() for part, _ in made}
    if not fresh and not any(gone(_fields(part)) for part in parts):
        return
    names = sorted(part for part in fresh | parts if not gone(_fields(part)))
    partial = folder / f".{stem}.compacting.tmp"
    try:
        counts = _merge(_tables(folder, names, fresh=fresh, old=old), partial, schema)
        target = f"{stem}{manifest.COMPACTED}{_digest(partial)}.parquet"
        os.replace(partial, folder / target)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    others = {name: parts for name, parts in listed.items() if name not in old}
    manifest.write(folder, {**others, target: list(zip(names, counts, strict=True))})
    made = {path.name for path in folder.glob("*.parquet") if _is_made(path.name, stem)}
    for name in fresh | (made - {target}):
        (folder / name).unlink(missing_ok=True)


def _fresh(folder: Path, stem: str) -> set[str]:
    """The stage's files that no compaction made."""
    return {
        path.name
        for path in folder.glob("*.parquet")
        if path.name.startswith(f"{stem}.") and manifest.COMPACTED not in path.name
    }


def _fields(name: str) -> list[str]:
    """The fields of a part's name, without stage and suffix."""
    return name.split(".")[1:-1]


def _is_made(name: str, stem: str) -> bool:
    return name.startswith(f"{stem}{manifest.COMPACTED}")


def _tables(
    folder: Path, names: Sequence[str], *, fresh: Set[str], old: manifest.Manifest
) -> Iterator[pa.Table]:
    """The rows of each part: from its own file, else from the compacted file that it went into."""
    import pyarrow.parquet as pq

    kept: dict[str, pa.Table] = {}
    for made, parts in old.items():
        whole, start = pq.read_table(folder / made), 0
        for part, rows in parts:
            kept[part] = whole.slice(start, rows)
            start += rows
    for name in names:
        yield pq.read_table(folder / name) if name in fresh else kept[name]


def _merge(tables: Iterator[pa.Table], path: Path, schema: pa.Schema) -> list[int]:
    """Write all tables into one durable file, a row group at a time; return the rows of each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts: list[int] = []
    waiting: list[pa.Table] = []
    with (
        path.open("wb") as file,
        pq.ParquetWriter(file, schema, compression="zstd", compression_level=LEVEL) as writer,
    ):
        for table in tables:
            counts.append(table.num_rows)
            waiting.append(table)
            if sum(one.num_rows for one in waiting) >= GROUP_ROWS:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
        writer.close()
        file.flush()
        os.fsync(file.fileno())
    return counts


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]
