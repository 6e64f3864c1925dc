from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from pyarrow import parquet
from tests.analysis.test_gathered import many
from tests.cli.snapshot import check_snapshot, settled

from agentrecipes.analysis.gathered import MANY
from agentrecipes.cli.main import main


def made_run(name, **summary: object) -> None:
    """A run's folder, as far as the list of runs looks at it."""
    folder = Path("runs") / name
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text("name: small\n")
    (folder / "summary.json").write_text(json.dumps({"run": name, **summary}))


def test_a_select_answers_where_nothing_has_run(command):
    told = json.loads(command("query", "select count(*) as runs from runs", "--json").out)
    assert (told["columns"], told["rows"]) == (["runs"], [[0]])
    assert told["seconds"] >= 0
    done = command("query", "select 1 as one, 'x' as two", "--format", "json")
    assert json.loads(done.out) == [{"one": 1, "two": "x"}]


def test_the_first_question_to_many_runs_says_what_it_waits_for(command):
    many(Path("runs"))
    first, second = (command("query", "select count(*) from metrics") for _ in range(2))
    told = f"copying the metrics of {MANY} runs into one file, once, so that questions are quick"
    assert told in first.err
    assert (first.out, second.err) == (second.out, "")


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
    assert json.loads(command("runs", "--format", "json").out) == []
    assert json.loads(command("runs", "--json").out)["rows"] == []


def test_runs_are_listed_with_their_last_value(command):
    made_run("a", status="finished", seed=7, evaluations=[{"metric": "f1", "value": 0.5}])
    made_run("b", status="stopped", seed=8)
    [first, second] = sorted(
        json.loads(command("runs", "--format", "json").out), key=lambda row: row["run"]
    )
    assert (first["status"], first["metric"], first["value"]) == ("finished", "f1", 0.5)
    assert (second["status"], second["seed"], second["value"]) == ("stopped", 8, None)
    told = json.loads(command("runs", "--json").out)
    assert set(told) == {"columns", "rows", "seconds"}
    assert len(told["rows"]) == 2
    assert command("runs").out.splitlines()[0].split()[:3] == ["run", "status", "metric"]
    assert command("runs", "--runs-dir", "elsewhere").out == "no runs yet\n"
