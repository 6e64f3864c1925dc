from __future__ import annotations

import os
import shutil
import threading

import pyarrow.parquet as pq
import pytest

from agentrecipes.tracking import compaction, manifest
from agentrecipes.tracking.columns import schema
from agentrecipes.tracking.tables import MetricRow, Tables


def write(tables, iteration, *, value=None):
    row = MetricRow(iteration, iteration, "m", iteration if value is None else value, 0.0)
    tables.metrics("s", [row], name=f"{iteration:06d}")


def values(folder):
    paths = manifest.current(folder)
    return [value for path in paths for value in pq.read_table(path)["value"].to_pylist()]


@pytest.fixture
def tables(tmp_path):
    tables = Tables(tmp_path, "r")
    for iteration in range(4):
        write(tables, iteration)
    return tables


def test_one_file_with_all_rows_in_order_takes_the_place_of_the_small_ones(tables, tmp_path):
    tables.compact("s")
    folder = tmp_path / "metrics"
    assert len(list(folder.glob("*.parquet"))) == 1
    assert values(folder) == [0, 1, 2, 3]


def test_compacting_again_changes_nothing(tables, tmp_path):
    tables.compact("s")
    before = {path: path.read_bytes() for path in (tmp_path / "metrics").iterdir()}
    tables.compact("s")
    assert {path: path.read_bytes() for path in (tmp_path / "metrics").iterdir()} == before


def test_rows_written_again_after_a_compaction_replace_their_old_ones(tables, tmp_path):
    tables.compact("s")
    write(tables, 2, value=20)  # a resumed run repeats an iteration
    write(tables, 4)
    tables.compact("s")
    assert values(tmp_path / "metrics") == [0, 1, 20, 3, 4]
    assert len(list((tmp_path / "metrics").glob("*.parquet"))) == 1


def test_another_stage_is_left_alone(tables, tmp_path):
    tables.metrics("s2", [MetricRow(0, 0, "m", 9.0, 0.0)], name="000000")
    tables.compact("s")
    assert (tmp_path / "metrics" / "s2.000000.parquet").exists()
    assert sorted(values(tmp_path / "metrics")) == [0, 1, 2, 3, 9]


@pytest.mark.parametrize("arrived", ["partial", "compacted", "manifest"])
def test_a_kill_at_any_step_neither_hides_nor_doubles_a_row(tables, tmp_path, arrived):
    # The steps: a partial file, the compacted file, the manifest, the removal of the parts. A
    # killed compaction leaves the small files and what came before the step it did not reach.
    folder, done = tmp_path / "metrics", tmp_path / "done"
    shutil.copytree(folder, done)
    compaction.compact(done, "s", schema=schema("metrics"))
    [made] = done.glob("*.parquet")
    if arrived == "partial":
        (folder / ".s.compacting.tmp").write_bytes(made.read_bytes()[:100])
    else:
        shutil.copy(made, folder)
    if arrived == "manifest":
        shutil.copy(done / manifest.NAME, folder)
    assert sorted(values(folder)) == [0, 1, 2, 3]
    compaction.compact(folder, "s", schema=schema("metrics"))
    assert values(folder) == [0, 1, 2, 3]
    assert len(list(folder.glob("*.parquet"))) == 1


def test_a_reader_sees_every_row_once_while_a_writer_compacts(tmp_path):
    tables = Tables(tmp_path, "r")
    folder = tmp_path / "metrics"
    write(tables, 0)
    wrong, over = [], threading.Event()

    def look() -> None:
        while not over.is_set():
            paths = manifest.current(folder)
            try:
                found = [pq.read_table(path)["value"].to_pylist() for path in paths]
            except FileNotFoundError:
                continue  # compacted meanwhile: ask again
            flat = sorted(value for each in found for value in each)
            if flat != list(range(len(flat))):
                wrong.append(flat)

    reader = threading.Thread(target=look)
    reader.start()
    for iteration in range(1, 40):
        write(tables, iteration)
        if iteration % 5 == 0:
            tables.compact("s")
    over.set()
    reader.join()
    assert wrong == []
    assert values(folder) == list(range(40))


def test_half_written_files_and_links_do_not_count(tables, tmp_path):
    folder = tmp_path / "metrics"
    (folder / ".s.000009.parquet.tmp").write_bytes(b"half")
    (folder / "s.+0123.parquet").write_bytes(b"a compaction that the manifest does not know")
    os.symlink("/etc/passwd", folder / "s.000008.parquet")
    assert sorted(values(folder)) == [0, 1, 2, 3]


def test_a_manifest_that_names_a_file_elsewhere_is_refused(tables, tmp_path):
    (tmp_path / "metrics" / manifest.NAME).write_text('{"../../x.parquet": []}')
    with pytest.raises(ValueError, match="outside its folder"):
        manifest.current(tmp_path / "metrics")
