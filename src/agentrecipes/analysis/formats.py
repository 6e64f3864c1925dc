"""A query's result as text or bytes: an aligned table, CSV, JSON, Parquet."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from agentrecipes.analysis.query import Result

CELL = 48  # characters of a cell in a table
ARROW = {
    "VARCHAR": "string",
    "BIGINT": "int64",
    "INTEGER": "int32",
    "DOUBLE": "float64",
    "BOOLEAN": "bool",
    "HUGEINT": "float64",  # what sum() of whole numbers is; Parquet has none so large
}


def as_table(result: Result) -> str:
    """Aligned columns for reading; long cells are cut, numbers rounded to four digits."""
    rows = [result.columns, *([_cell(value) for value in row] for row in result.rows)]
    widths = [max(len(row[index]) for row in rows) for index in range(len(result.columns))]
    lines = [_line(row, widths, result.types) for row in rows]
    rule = "  ".join("-" * width for width in widths)
    more = ["… and more rows"] if result.truncated else []
    return "\n".join([lines[0], rule, *lines[1:], *more]) + "\n"


def as_csv(result: Result) -> str:
    """Lines with a header; null is empty, lists and maps are JSON."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(result.columns)
    for row in result.rows:
        writer.writerow([_json_cell(value) for value in row])
    return file.getvalue()


def as_json(result: Result) -> str:
    """An array of objects; what JSON lacks (NaN, infinity) is null."""
    return json.dumps([dict(row) for row in as_records(result)], ensure_ascii=False) + "\n"


def as_records(result: Result) -> list[Mapping[str, Any]]:
    """The rows as mappings of values that JSON has."""
    return [
        dict(zip(result.columns, (plain(value) for value in row), strict=True))
        for row in result.rows
    ]


def as_parquet(result: Result) -> bytes:
    """One Parquet file, zstd."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = []
    for index, kind in enumerate(result.types):
        values = [row[index] for row in result.rows]
        known = ARROW.get(kind)
        if known is None:
            values = [_json_text(value) for value in values]
        elif known == "float64":
            values = [None if value is None else float(value) for value in values]
        arrays.append(pa.array(values, type=known or "string"))
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays, names=list(result.columns)), sink, compression="zstd")
    return bytes(sink.getvalue())


def plain(value: Any) -> Any:
    """`value` as JSON has it; dates and decimals become text and numbers."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    try:
        return float(value)  # Decimal
    except (TypeError, ValueError):
        return str(value)


def _json_cell(value: Any) -> Any:
    value = plain(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _json_text(value: Any) -> str | None:
    value = _json_cell(value)
    return value if value is None or isinstance(value, str) else str(value)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(_json_cell(value))
    text = " ".join(text.split())
    return text if len(text) <= CELL else f"{text[: CELL - 1]}…"


def _line(row: Sequence[str], widths: Sequence[int], types: Sequence[str]) -> str:
    cells = [
        cell.ljust(width) if kind == "VARCHAR" else cell.rjust(width)
        for cell, width, kind in zip(row, widths, types, strict=True)
    ]
    return "  ".join(cells).rstrip()
