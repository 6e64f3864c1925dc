"""Reads data files that a recipe names: JSON lines, plain or gzipped, and corpora made of them."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentrecipes.errors import RecipeError
from agentrecipes.records import Passage

Row = tuple[str, dict[str, Any]]  # where it stands ("file:line"), and the object


def rows(path: Path) -> list[Row]:
    """The objects of a file, one a line, blank lines skipped; ``.gz`` is unpacked.

    The rows of a ``.parquet`` file are its objects.

    Raises:
        RecipeError: the file cannot be read, or a line, which the message names, is no object.
    """
    if path.suffix == ".parquet":
        return _columns(path)
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecipeError(
            f"{path}: cannot be read ({error}). Give a UTF-8 file with one JSON object a line"
        ) from error
    lines = enumerate(text.split("\n"), start=1)
    return [_row(line, f"{path}:{number}") for number, line in lines if line.strip()]


def first_row(path: Path) -> Row:
    """The first object of a file, without reading all of it.

    Raises:
        RecipeError: it cannot be read, is empty, or opens with something else.
    """
    try:
        if path.suffix == ".parquet":
            found = _columns(path)[:1]
        else:
            opener = gzip.open if path.suffix == ".gz" else open
            with opener(path, "rt", encoding="utf-8-sig") as lines:
                numbered = enumerate(lines, start=1)
                kept = next(((n, line) for n, line in numbered if line.strip()), None)
            found = [] if kept is None else [_row(kept[1], f"{path}:{kept[0]}")]
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecipeError(f"{path}: cannot be read ({error})") from error
    if not found:
        raise RecipeError(f"{path}: it is empty")
    return found[0]


def _columns(path: Path) -> list[Row]:
    import pyarrow
    import pyarrow.parquet

    try:
        found = pyarrow.parquet.read_table(path).to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise RecipeError(f"{path}: cannot be read ({error}). Give a Parquet file") from error
    return [(f"{path}:{number}", row) for number, row in enumerate(found, start=1)]


def _row(line: str, where: str) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecipeError(f"{where}: no JSON ({error}). Write one object a line") from error
    if not isinstance(row, dict):
        raise RecipeError(f"{where}: {line.strip()[:40]!r} is no object. Write one object a line")
    return where, row


def unique(identity: str, where: str, seen: dict[str, str]) -> str:
    """`identity`, noted in `seen` under where it stands.

    Raises:
        RecipeError: another line has it too.
    """
    if identity in seen:
        raise RecipeError(
            f"{where}: the id {identity!r} is that of {seen[identity]} too. Give each its own"
        )
    seen[identity] = where
    return identity


@lru_cache(maxsize=8)
def passages(path: Path) -> tuple[Passage, ...]:
    """The corpus in a file of lines, or Parquet rows, with ``id``, ``title`` and ``text``.

    ``contents``, a quoted title and a newline before the text, stands for both, as in Search-R1.

    Raises:
        RecipeError: a line is no passage, two share an id, or there is none; the message names it.
    """
    seen: dict[str, str] = {}
    found = []
    for where, row in rows(path):
        if not isinstance(row.get("id"), str | int):
            raise RecipeError(f"{where}: no id. Write an object with id, title and text")
        unique(str(row["id"]), where, seen)
        try:
            found.append(passage_of(row))
        except ValueError as error:
            raise RecipeError(f"{where}: {error}. Check them") from error
    if not found:
        raise RecipeError(f"{path}: no passages. Write one object with id, title and text a line")
    return tuple(found)


def passage_of(row: Mapping[str, Any]) -> Passage:
    """A row with ``id`` and either ``title`` and ``text`` or ``contents`` as a passage.

    Raises:
        ValueError: title or text is something else than text.
    """
    title, text = row.get("title") or "", row.get("text", row.get("contents"))
    if not isinstance(title, str) or not isinstance(text, str):
        raise ValueError("title and text must be text")
    if not title and "text" not in row:
        head, newline, rest = text.partition("\n")
        if newline:
            title, text = head.strip().strip('"'), rest
    return Passage(str(row["id"]), title, text)
