from __future__ import annotations

import io
import json
from datetime import date
from decimal import Decimal

import pyarrow.parquet as pq

from agentrecipes.analysis.formats import as_csv, as_json, as_parquet, as_table
from agentrecipes.analysis.query import Result

RESULT = Result(
    columns=("run", "n", "value", "gold", "parts"),
    types=("VARCHAR", "BIGINT", "DOUBLE", "VARCHAR[]", "MAP(VARCHAR, DOUBLE)"),
    rows=(
        ("a,b", 1, 0.123456, ["Rome"], {"em": 1.0}),
        ("c\nd", None, float("nan"), None, {"em": None}),
    ),
    seconds=0.1,
)


def test_a_table_is_aligned_numbers_to_the_right_and_cut_to_what_can_be_read():
    assert as_table(RESULT).splitlines() == [
        "run  n   value      gold         parts",
        "---  -  ------  --------  ------------",
        'a,b  1  0.1235  ["Rome"]   {"em": 1.0}',
        'c d        nan            {"em": null}',
    ]
    long = Result(("text",), ("VARCHAR",), (("x" * 100,),), 0.0, truncated=True)
    assert as_table(long).splitlines()[2:] == ["x" * 47 + "…", "… and more rows"]


def test_csv_quotes_commas_and_leaves_nulls_empty():
    assert as_csv(RESULT) == (
        "run,n,value,gold,parts\n"
        '"a,b",1,0.123456,"[""Rome""]","{""em"": 1.0}"\n'
        '"c\nd",,,,"{""em"": null}"\n'
    )


def test_json_is_an_array_of_objects_that_any_reader_takes():
    assert json.loads(as_json(RESULT), parse_constant=str) == [
        {"run": "a,b", "n": 1, "value": 0.123456, "gold": ["Rome"], "parts": {"em": 1.0}},
        {"run": "c\nd", "n": None, "value": None, "gold": None, "parts": {"em": None}},
    ]
    odd = Result(("d", "x"), ("DATE", "DECIMAL(4,2)"), ((date(2020, 1, 2), Decimal("1.5")),), 0.0)
    assert json.loads(as_json(odd)) == [{"d": "2020-01-02", "x": 1.5}]


def test_parquet_keeps_types_even_without_rows():
    empty = Result(RESULT.columns, RESULT.types, (), 0.0)
    found = pq.read_table(io.BytesIO(as_parquet(empty)))
    assert [str(kind) for kind in found.schema.types[:3]] == ["string", "int64", "double"]
    rows = pq.read_table(io.BytesIO(as_parquet(RESULT))).to_pylist()
    assert rows[0] == {
        "run": "a,b",
        "n": 1,
        "value": 0.123456,
        "gold": '["Rome"]',
        "parts": '{"em": 1.0}',
    }


def test_a_whole_number_too_large_for_its_column_is_still_written():
    huge = Result(("n",), ("HUGEINT",), ((2**70,), (3,)), 0.0)
    rows = pq.read_table(io.BytesIO(as_parquet(huge))).to_pylist()
    assert [row["n"] for row in rows] == [float(2**70), 3.0]
