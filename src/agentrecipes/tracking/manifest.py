"""Which Parquet files of a table count, while another process may be writing or compacting.

A table is a folder of files. At the end of a stage its small files become one. The manifest,
replaced in one step, is what makes the change: a compacted file counts only once the manifest names
it, and from then on the files it was made of no longer count, whether they are still there or not.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

from agentrecipes.tracking import replacing

NAME = "manifest.json"
COMPACTED = (
    ".+"  # in a compacted file's name and in no other: a plus sign in a field is written %2B
)

Manifest = Mapping[str, list[tuple[str, int]]]
"""Compacted file → the files it was made of, in order, with their number of rows."""


def field(text: str) -> str:
    """`text` as one field of a file name: fields are parted by dots and hold none."""
    return quote(text, safe=",").replace(".", "%2E")


def read(folder: Path) -> Manifest:
    """The table's manifest; empty where nothing was compacted yet.

    Raises:
        ValueError: it is not one, or names a file outside its folder.
    """
    try:
        with open(f"{folder}/{NAME}", encoding="utf-8") as file:
            data = json.load(file)
    except FileNotFoundError:
        return {}
    if any("/" in name or name.startswith(".") for name in data):
        raise ValueError(f"{folder}/{NAME}: names a file outside its folder")
    return {name: [(part, rows) for part, rows in parts] for name, parts in data.items()}


def write(folder: Path, manifest: Manifest) -> None:
    """Put the manifest in its place, durably."""
    replacing.write(folder / NAME, json.dumps(manifest, indent=0, sort_keys=True).encode())


def current(folder: Path | str) -> list[str]:
    """Paths of the files that together hold every row of the table once, by name; no links.

    A file may be gone by the time it is opened, when a compaction ended meanwhile: ask again then.
    """
    # Files first, manifest second: if a compaction ends in between, the manifest already names what
    # it made, and the parts that it removed are not asked for.
    plain = {name for name in _parquet_names(folder) if COMPACTED not in name}
    manifest = read(Path(folder))
    replaced = {part for parts in manifest.values() for part, _ in parts}
    return [f"{folder}/{name}" for name in sorted((plain - replaced) | set(manifest))]


def _parquet_names(folder: Path | str) -> set[str]:
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return set()
    return {
        entry.name
        for entry in entries
        if entry.name.endswith(".parquet")
        and not entry.name.startswith(".")
        and not entry.is_symlink()
    }
