from __future__ import annotations

import os
import threading
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.tracking.made import store

from agentrecipes.analysis.query import query
from agentrecipes.errors import AgentRecipesError, RecipeError
from agentrecipes.tracking import manifest
from agentrecipes.tracking.columns import COLUMNS
from agentrecipes.tracking.tables import MetricRow, Tables


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return store(tmp_path_factory.mktemp("runs"))


def test_every_row_of_every_run_is_counted_once_compacted_or_not(made):
    # Two runs of two iterations: 3 trajectories of 2 + 3 + 1 turns, 2 metrics and 2 evaluations
    # each; and one evaluation of an earlier stage.
    expected = {"runs": 2, "trajectories": 12, "turns": 24, "metrics": 8, "evaluations": 10}
    counts = {table: query(f"SELECT count(*) FROM {table}", made).rows[0][0] for table in expected}
    assert counts == expected


def test_tables_can_be_joined_and_maps_and_lists_read(made):
    result = query(
        """
        SELECT r.seed, r.recipe, t.task, t.parts['exact_match'] AS em, t.gold[1] AS gold
        FROM trajectories AS t JOIN runs AS r USING (run) JOIN recipes AS p USING (run)
        WHERE p.path = 'stages.reinforce.iterations' AND p.value = '2' AND t.iteration = 1
        ORDER BY ALL
        """,
        made,
    )
    assert result.columns == ("seed", "recipe", "task", "em", "gold")
    assert result.types == ("BIGINT", "VARCHAR", "VARCHAR", "DOUBLE", "VARCHAR")
    assert result.rows == tuple(
        (seed, "demo", task, em, "Rome")
        for seed in (0, 1)
        for task, em in (("t0", 1.0), ("t1", 0.0), ("t2", None))
    )
    assert result.seconds > 0.0


def test_token_ids_come_back_as_they_were_sampled(made):
    sql = "SELECT prompt_ids, action_ids, logp_rollout FROM turns WHERE run = 'demo-1' LIMIT 1"
    assert query(sql, made).rows == (([1, 2], [7, 8], [-0.1, -0.2]),)


def test_every_view_is_there_with_its_columns_where_nothing_has_run(tmp_path):
    for table, columns in COLUMNS.items():
        result = query(f"SELECT * FROM {table}", tmp_path / "nowhere")
        assert (result.columns, result.rows) == (tuple(columns), ())
        assert result.types == tuple(columns.values())


def test_only_as_many_rows_as_asked_for_are_fetched(made):
    few = query("SELECT * FROM turns", made, rows=3)
    assert (len(few.rows), few.truncated) == (3, True)
    assert not query("SELECT * FROM runs", made, rows=2).truncated


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "-- a comment alone",
        "SELECT 1; SELECT 2",
        "PRAGMA show_tables",
        "SET threads = 1",
        "RESET threads",
        "ATTACH 'x.db'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "COPY runs TO 'out.csv'",
        "/* SELECT */ COPY (SELECT 1) TO 'out.csv'",
        "EXPORT DATABASE 'out'",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW runs",
        "DELETE FROM runs",
        "INSERT INTO runs VALUES (1)",
        "CALL pragma_version()",
        "EXPLAIN ANALYZE SELECT 1",
        "DESCRIBE runs",
        "SHOW TABLES",
        "PIVOT metrics ON name USING avg(value)",
        "CHECKPOINT memory",
        "SELEC 1",
        "SELECT nothing FROM runs",
        "SELECT * FROM nowhere",
    ],
)
def test_anything_but_one_good_select_is_refused_with_a_reason(made, sql, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RecipeError) as refused:
        query(sql, made)
    assert refused.value.exit_code == 2
    assert str(refused.value).startswith("query: ")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "source",
    [
        "read_csv('/etc/passwd')",
        "read_text('/etc/passwd')",
        "read_blob('/etc/hostname')",
        "read_parquet('{outside}')",
        "read_text('{inside}')",
        "read_text('{runs}/../secret.parquet')",
        "read_parquet('http://127.0.0.1:9/x.parquet')",
        "glob('/etc/*')",
        "parquet_metadata('{outside}')",
        "sniff_csv('/etc/passwd')",
        "'/etc/passwd'",
        "duckdb_secrets()",
    ],
)
def test_no_file_but_the_tables_can_be_read(source, tmp_path):
    runs = store(tmp_path / "runs")
    outside = tmp_path / "secret.parquet"
    pq.write_table(pa.table({"secret": [1]}), outside)
    inside = runs / "demo-0" / "notes.txt"
    inside.write_text("not a table")
    sql = f"SELECT * FROM {source}, runs".format(outside=outside, inside=inside, runs=runs)
    with pytest.raises(RecipeError):
        query(sql, runs)


def test_python_variables_are_no_tables(made):
    secret = pa.table({"a": [1]})
    with pytest.raises(RecipeError, match="secret"):
        query("SELECT * FROM secret", made)
    assert secret.num_rows == 1


def test_links_that_lead_out_of_the_runs_folder_are_not_followed(tmp_path):
    store(tmp_path / "elsewhere")
    runs = tmp_path / "runs"
    (runs / "linked").mkdir(parents=True)
    os.symlink(tmp_path / "elsewhere" / "demo-0" / "tables", runs / "linked" / "tables")
    os.symlink(tmp_path / "elsewhere" / "demo-1", runs / "demo-1")
    metrics = runs / "file" / "tables" / "metrics"
    metrics.mkdir(parents=True)
    [own] = manifest.current(tmp_path / "elsewhere" / "demo-1" / "tables" / "metrics")
    os.symlink(own, metrics / "s.0.parquet")
    assert query("SELECT * FROM metrics", runs).rows == ()


def test_a_half_written_file_is_not_seen(tmp_path):
    runs = store(tmp_path)
    (runs / "demo-0" / "tables" / "metrics" / ".x.parquet.tmp").write_bytes(b"PAR1")
    assert query("SELECT count(*) FROM metrics", runs).rows == ((8,),)


@pytest.mark.parametrize("damage", [b"", b"PAR1 is all that is left", None])
def test_a_damaged_file_is_named(tmp_path, damage):
    runs = store(tmp_path)
    [path, *_] = [p for p in map(str, (runs / "demo-0" / "tables" / "turns").glob("*.parquet"))]
    with open(path, "r+b") as file:
        if damage is None:
            file.seek(60)
            file.write(b"\xff" * 400)
        else:
            file.truncate(0)
            file.write(damage)
    with pytest.raises(AgentRecipesError, match="the file is damaged") as found:
        query("SELECT * FROM turns", runs)
    assert path in str(found.value)
    assert found.value.exit_code == 1
    assert query("SELECT count(*) FROM runs", runs).rows == ((2,),)


def test_a_query_that_takes_too_long_is_interrupted(made):
    started = time.monotonic()
    with pytest.raises(AgentRecipesError, match=r"stopped after 0\.3 seconds"):
        query(
            "SELECT sum(a.range * b.range) FROM range(10000000) a, range(10000000) b",
            made,
            limit_seconds=0.3,
        )
    assert time.monotonic() - started < 10.0


def test_files_of_an_older_version_are_read_with_nulls_for_what_they_lack(tmp_path):
    runs = store(tmp_path)
    folder = runs / "old" / "tables" / "metrics"
    folder.mkdir(parents=True)
    pq.write_table(
        pa.table({"run": ["old"], "name": ["m"], "value": [2.0]}), folder / "s.0.parquet"
    )
    rows = query("SELECT run, value, seconds FROM metrics WHERE name = 'm'", runs).rows
    assert rows == (("old", 2.0, None),)


def test_queries_go_on_while_a_run_writes_and_compacts(tmp_path):
    tables = Tables(tmp_path / "r" / "tables", "r")
    over = threading.Event()

    def run() -> None:
        for iteration in range(60):
            tables.metrics("s", [MetricRow(iteration, 0, "m", 1.0, 0.0)], name=f"{iteration:06d}")
            if iteration % 3 == 0:
                tables.compact("s")
            time.sleep(0.005)
        over.set()

    writer = threading.Thread(target=run)
    writer.start()
    wrong = []
    while not over.is_set():
        [[count, distinct]] = query(
            "SELECT count(*), count(DISTINCT iteration) FROM metrics", tmp_path
        ).rows
        if count != distinct:
            wrong.append((count, distinct))
    writer.join()
    assert wrong == []
    assert query("SELECT count(*) FROM metrics", tmp_path).rows == ((60,),)


def test_a_stray_file_among_the_runs_is_no_run(made):
    (made / "notes.txt").write_text("not a run", encoding="utf-8")
    try:
        assert query("SELECT count(*) FROM trajectories", made).rows[0][0] == 12
    finally:
        (made / "notes.txt").unlink()
