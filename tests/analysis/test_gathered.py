"""What holds of a store of many runs must hold whether its files were copied into one or not."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agentrecipes.analysis import gathered
from agentrecipes.analysis.copied import FOLDER
from agentrecipes.analysis.gathered import Limits
from agentrecipes.analysis.query import query
from agentrecipes.errors import AgentRecipesError
from agentrecipes.tracking.columns import schema
from agentrecipes.tracking.tables import MetricRow, Tables

ROWS = "SELECT run, iteration, value FROM metrics ORDER BY ALL"


def run(root: Path, number: int, *values: float, age_seconds: float = 600.0) -> Path:
    """A run with one metric; its folder of metrics, as if last written so long ago."""
    name = f"r{number:03d}"
    tables = Tables(root / name / "tables", name)
    rows = [MetricRow(index, index, "m", value, 0.0) for index, value in enumerate(values)]
    tables.metrics("s", rows, name="000000")
    assert tables.lost == []
    folder = root / name / "tables" / "metrics"
    aged(folder, age_seconds)
    return folder


def aged(folder: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(folder, (then, then))


def many(root: Path) -> list[Path]:
    return [run(root, number, number + 0.5) for number in range(gathered.MANY)]


def copies(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*.parquet"))


def current(root: Path, limits: Limits) -> list[Path]:
    return gathered.current(root, "metrics", limits=limits)


def expected(*numbers: int) -> tuple[tuple[str, int, float], ...]:
    return tuple((f"r{number:03d}", 0, number + 0.5) for number in numbers)


@pytest.fixture(scope="module")
def asked(tmp_path_factory) -> Path:
    """A store of as many runs as are worth a copy, asked once."""
    root = tmp_path_factory.mktemp("runs")
    many(root)
    assert query(ROWS, root).rows == expected(*range(gathered.MANY))
    return root


@pytest.fixture
def store(asked, tmp_path) -> Path:
    return Path(shutil.copytree(asked, tmp_path / "runs", copy_function=shutil.copy2))


def test_the_files_of_many_runs_become_one_and_say_the_same(store):
    [copy] = copies(store)
    assert gathered.current(store, "metrics") == [copy]
    assert query(ROWS, store).rows == expected(*range(gathered.MANY))
    assert pq.read_schema(copy) == schema("metrics")


def test_few_runs_are_read_where_they_are(tmp_path):
    for number in range(gathered.MANY - 1):
        run(tmp_path, number, 1.0)
    assert query("SELECT count(*) FROM metrics", tmp_path).rows == ((gathered.MANY - 1,),)
    assert not (tmp_path / FOLDER).exists()


def test_a_copy_stays_while_runs_are_added(store):
    before = copies(store)
    run(store, 900, 900.5)
    assert query(ROWS, store).rows == expected(*range(gathered.MANY), 900)
    assert copies(store) == before


def test_a_run_that_was_removed_is_gone_from_the_answer(store):
    shutil.rmtree(store / "r007")
    left = [number for number in range(gathered.MANY) if number != 7]
    assert query(ROWS, store).rows == expected(*left)


def test_a_run_that_went_on_is_read_anew(store):
    tables = Tables(store / "r003" / "tables", "r003")
    tables.metrics("s", [MetricRow(1, 1, "m", 9.0, 0.0)], name="000001")
    rows = query("SELECT iteration, value FROM metrics WHERE run = 'r003' ORDER BY ALL", store).rows
    assert rows == ((0, 3.5), (1, 9.0))
    tables.compact("s")
    assert query("SELECT count(*) FROM metrics", store).rows == ((gathered.MANY + 1,),)


def test_a_file_that_was_changed_in_its_place_is_read_anew(store):
    folder = store / "r003" / "tables" / "metrics"
    [path], changed = folder.glob("*.parquet"), folder.stat().st_mtime_ns
    rows = pq.read_table(path).set_column(5, "value", pa.array([7.5]))
    pq.write_table(rows.cast(schema("metrics")), path)
    os.utime(folder, ns=(changed, changed))
    assert query("SELECT value FROM metrics WHERE run = 'r003'", store).rows == ((7.5,),)


def test_a_run_that_was_copied_or_renamed_is_called_as_its_folder_is(store):
    shutil.copytree(store / "r003", store / "r003-copy")
    (store / "r005").rename(store / "other")
    found = {name: value for name, _, value in query(ROWS, store).rows}
    assert (found["r003"], found["r003-copy"], found["other"]) == (3.5, 3.5, 5.5)
    assert "r005" not in found
    assert len(found) == gathered.MANY + 1


def test_rows_are_copied_under_the_name_of_their_folder(tmp_path):
    many(tmp_path)
    (tmp_path / "r005").rename(tmp_path / "s")
    rows = query("SELECT value FROM metrics WHERE run = 's'", tmp_path).rows
    assert len(copies(tmp_path)) == 1
    assert rows == ((5.5,),)
    assert query("SELECT count(DISTINCT run) FROM metrics", tmp_path).rows == ((gathered.MANY,),)


def test_a_copy_of_another_version_is_made_again(store):
    [index] = (store / FOLDER).glob("*.json")
    index.write_text(json.dumps({**json.loads(index.read_text()), "version": 1}))
    before = copies(store)[0].stat().st_mtime_ns
    assert query(ROWS, store).rows == expected(*range(gathered.MANY))
    [copy] = copies(store)
    assert copy.stat().st_mtime_ns > before


def test_runs_that_go_on_or_just_changed_are_not_copied(tmp_path):
    for folder in many(tmp_path)[: gathered.MANY // 2]:
        aged(folder, 1.0)
    assert query("SELECT count(*) FROM metrics", tmp_path).rows == ((gathered.MANY,),)
    assert copies(tmp_path) == []
    for number in range(gathered.MANY):
        aged(tmp_path / f"r{number:03d}" / "tables" / "metrics", 600.0)
    (tmp_path / "r000" / ".running").touch()
    assert query("SELECT count(*) FROM metrics", tmp_path).rows == ((gathered.MANY,),)
    assert copies(tmp_path) == []


def test_tables_of_an_older_version_are_copied_with_nulls(tmp_path):
    [path] = many(tmp_path)[5].glob("*.parquet")
    folder, changed = path.parent, path.parent.stat().st_mtime_ns
    pq.write_table(pq.read_table(path).drop_columns(["seconds"]), path)
    os.utime(folder, ns=(changed, changed))
    rows = query("SELECT value, seconds FROM metrics WHERE iteration = 0 ORDER BY run", tmp_path)
    assert len(copies(tmp_path)) == 1
    assert rows.rows[4:7] == ((4.5, 0.0), (5.5, None), (6.5, 0.0))


def test_a_table_of_a_later_version_is_read_beside_the_copy_with_its_columns(tmp_path):
    [path] = many(tmp_path)[5].glob("*.parquet")
    folder, changed = path.parent, path.parent.stat().st_mtime_ns
    later = pq.read_table(path).append_column("watts", pa.array([2.5]))
    pq.write_table(later, path)
    os.utime(folder, ns=(changed, changed))
    sql = "SELECT run, watts FROM metrics WHERE watts IS NOT NULL"
    assert query(sql, tmp_path).rows == (("r005", 2.5),)
    made = copies(tmp_path)
    assert len(made) == 1
    assert gathered.current(tmp_path, "metrics") == [*made, path]
    assert query("SELECT count(*) FROM metrics", tmp_path).rows == ((gathered.MANY,),)
    assert copies(tmp_path) == made


def test_a_damaged_table_is_named_all_the_same(tmp_path):
    [path] = many(tmp_path)[5].glob("*.parquet")
    path.write_bytes(b"PAR1 is all that is left")
    aged(path.parent, 600.0)
    for _ in range(2):  # before there is a copy, and beside it
        with pytest.raises(AgentRecipesError, match=f"{path}: the file is damaged"):
            query(ROWS, tmp_path)


@pytest.mark.parametrize("damage", ["copy", "index", "length"])
def test_a_copy_that_is_not_whole_does_not_count(store, damage):
    [copy] = copies(store)
    index = copy.with_suffix(".json")
    if damage == "copy":
        copy.unlink()
    elif damage == "index":
        index.write_text("{", encoding="utf-8")
    else:
        copy.write_bytes(copy.read_bytes()[:-1])
    assert query(ROWS, store).rows == expected(*range(gathered.MANY))
    assert len(copies(store)) == 1


def test_two_copies_that_hold_one_run_never_count_it_twice(store):
    [copy] = copies(store)
    other = copy.with_name("metrics-zzzzzzzzzzzz.parquet")
    shutil.copy2(copy, other)
    shutil.copy2(copy.with_suffix(".json"), other.with_suffix(".json"))
    assert query(ROWS, store).rows == expected(*range(gathered.MANY))


def test_many_copies_become_one_again(tmp_path):
    limits = Limits(many=2, copies=2)
    held = []
    for start in (0, 2, 4, 6):
        run(tmp_path, start, 1.0)
        run(tmp_path, start + 1, 1.0)
        held.append([pq.read_metadata(path).num_rows for path in current(tmp_path, limits)])
    # Two copies are the most: the third pair of runs takes both of them in.
    assert held == [[2], [2, 2], [6], [6, 2]]
    assert len(copies(tmp_path)) == 2


def test_a_large_table_stays_where_it_is(tmp_path):
    paths = [path for number in (0, 1) for path in run(tmp_path, number, 1.0).glob("*.parquet")]
    size = sum(path.stat().st_size for path in paths)
    assert current(tmp_path, Limits(many=2, most_bytes=size - 1)) == paths
    assert copies(tmp_path) == []
    assert current(tmp_path, Limits(many=2, most_bytes=size)) == copies(tmp_path)


def test_a_copy_reached_through_a_link_is_not_read(store, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    os.rename(store / FOLDER, elsewhere)
    (store / FOLDER).symlink_to(elsewhere)
    [copy] = elsewhere.glob("*.parquet")
    assert json.loads(copy.with_suffix(".json").read_bytes())["bytes"] == copy.stat().st_size
    assert query(ROWS, store).rows == expected(*range(gathered.MANY))
    assert not any(FOLDER in str(path) for path in gathered.current(store, "metrics"))
