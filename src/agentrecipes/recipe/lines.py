"""Reads data files that a recipe names: JSON lines, plain or gzipped, and corpora made of them."""

from __future__ import annotations

import gzip
import json
import zlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentrecipes.errors import RecipeError
from agentrecipes.records import Passage

Row = tuple[str, dict[str, Any]]  # where it stands ("file:line"), and the object


def rows(path: Path) -> list[Row]:
    """The objects of a file, one a line, blank lines skipped; ``.gz`` is unpacked.

    Raises:
        RecipeError: the file cannot be read, or a line, which the message names, is no object.
    """
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise RecipeError(
            f"{path}: cannot be read ({error}). Give a UTF-8 file with one JSON object a line"
        ) from error
    lines = enumerate(text.split("\n"), start=1)
    return [_row(line, f"{path}:{number}") for number, line in lines if line.strip()]


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
    """The corpus in a file of lines with ``id``, ``title`` and ``text``.

    Raises:
        RecipeError: a line is no passage, or two share an id; the message names the line.
    """
    seen: dict[str, str] = {}
    found = []
    for where, row in rows(path):
        identity, title, text = row.get("id"), row.get("title", ""), row.get("text")
        if not isinstance(identity, str | int):
            raise RecipeError(f"{where}: no id. Write an object with id, title and text")
        if not isinstance(title, str) or not isinstance(text, str):
            raise RecipeError(f"{where}: title and text must be text. Check them")
        found.append(Passage(unique(str(identity), where, seen), title, text))
    return tuple(found)
