from __future__ import annotations

import io
import json

import pytest
from pyarrow import parquet
from tests.cli.snapshot import check_snapshot, settled

from agentrecipes.analysis.query import Result
from agentrecipes.cli.main import main
from agentrecipes.cli.query import written

RESULT = Result(("run", "value"), ("VARCHAR", "DOUBLE"), (("a,b", 0.5), ("c", None)), 0.0)


def test_rows_are_written_as_table_csv_and_an_array_of_objects():
    assert written(RESULT, "table").splitlines() == ["run  value", "a,b    0.5", "c        -"]
    assert written(RESULT, "csv") == 'run,value\n"a,b",0.5\nc,'
    assert json.loads(written(RESULT, "json")) == [
        {"run": "a,b", "value": 0.5},
        {"run": "c", "value": None},
    ]


def test_a_select_answers_where_nothing_has_run(command):
    told = json.loads(command("query", "select count(*) as runs from runs", "--json").out)
    assert (told["columns"], told["rows"]) == (["runs"], [[0]])
    assert told["seconds"] >= 0
    done = command("query", "select 1 as one, 'x' as two", "--format", "json")
    assert json.loads(done.out) == [{"one": 1, "two": "x"}]


def test_parquet_goes_to_a_file_through_stdout(tmp_path, monkeypatch, capfdbinary):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as end:
        main(["query", "select 7 as seven", "--format", "parquet"])
    data = capfdbinary.readouterr().out
    assert end.value.code == 0
    assert parquet.read_table(io.BytesIO(data)).to_pydict() == {"seven": [7]}


@pytest.mark.parametrize(
    ("name", "sql"),
    [("drop", "drop table runs"), ("two", "select 1; select 2"), ("unknown", "bset")],
)
def test_anything_but_one_select_is_refused(command, tmp_path, name, sql):
    done = command("query", sql)
    assert (done.code, done.out) == (2, "")
    check_snapshot(f"query_{name}", settled(done.err, tmp_path))


def test_without_sql_the_named_queries_are_listed(command):
    told = json.loads(command("query", "--json").out)["queries"]
    assert told
    assert set(told) == {line.split()[0] for line in command("query").out.splitlines()[1:]}


def test_runs_are_an_empty_list_where_nothing_has_run(command):
    assert command("runs").out == "no runs yet\n"
    assert json.loads(command("runs", "--json").out) == {"runs": []}
