from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import replace

import pyarrow.parquet as pq
import pytest
from tests.tracking.made import scored, turn

from agentrecipes.records import Call, EvaluationRow, Judgement, Place
from agentrecipes.tracking import manifest
from agentrecipes.tracking.columns import COLUMNS
from agentrecipes.tracking.tables import MetricRow, Tables

PLACE = Place("reinforce", 3, "train", "sampled")


def read(folder, table):
    """All current rows of a table, as mappings."""
    paths = manifest.current(folder / table)
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


@pytest.fixture
def tables(tmp_path):
    return Tables(tmp_path, "r-1")


def test_a_trajectory_is_one_row_with_its_parts_and_its_nulls(tables, tmp_path):
    one = scored(total=None, parts={"exact_match": 1.0, "judged": None})
    tables.trajectories([one], PLACE, advantage_means=[-0.5])
    assert read(tmp_path, "trajectories") == [
        {
            "run": "r-1",
            "stage": "reinforce",
            "iteration": 3,
            "split": "train",
            "mode": "sampled",
            "task": "t0",
            "group_id": "g-t0",
            "attempt": 0,
            "role": "policy",
            "stop": "answered",
            "turns": 2,
            "policy_tokens": 3,
            "observation_tokens": 1,
            "total": None,
            "parts": [("exact_match", 1.0), ("judged", None)],
            "advantage_mean": -0.5,
            "answer": "Rome",
            "gold": ["Rome", "Roma"],
            "policy_version": 3,
            "seconds": 1.5,
        }
    ]


def test_turns_hold_only_what_is_new_and_the_whole_prompt_after_a_fork(tables, tmp_path):
    # Turn 1 goes on from [1 2][7 8] with the observation 5; turn 2's context was edited.
    edited = turn((1, 9, 9), (4,))
    straight = scored().trajectory.turns
    tables.trajectories([scored(turns=(*straight, edited))], PLACE)
    rows = read(tmp_path, "turns")
    assert [row["prompt_ids"] for row in rows] == [[1, 2], [5], [1, 9, 9]]
    assert [row["fork"] for row in rows] == [False, False, True]
    assert [row["action_ids"] for row in rows] == [[7, 8], [9], [4]]
    assert [row["turn_total"] for row in rows] == [0.0, 0.0, 1.0]
    assert rows[0]["logp_rollout"] == [-0.1, -0.2]
    assert json.loads(rows[0]["calls"]) == [{"tool": "search", "arguments": {"query": "é?"}}]
    assert [row["policy_versions"] for row in rows] == [None, None, None]


def test_turns_hold_the_advantages_of_their_own_tokens(tables, tmp_path):
    # The first trajectory was trained in both of its turns, the second not at all.
    by_turn = {0: [0.5, -0.25], 1: [0.75]}
    tables.trajectories([scored(), scored(attempt=1)], PLACE, advantages=[by_turn, {}])
    rows = read(tmp_path, "turns")
    assert [row["advantages"] for row in rows] == [[0.5, -0.25], [0.75], None, None]


def test_arguments_that_json_lacks_are_written_as_text(tables, tmp_path):
    odd = turn((1,), (2,), calls=(Call("f", {"x": {1, 2} - {2}, "y": float("1e9")}),))
    tables.trajectories([scored(turns=(odd,))], PLACE)
    assert json.loads(read(tmp_path, "turns")[0]["calls"])[0]["arguments"] == {"x": "{1}", "y": 1e9}
    assert tables.lost == []


def test_every_table_has_the_documented_columns_in_order(tables, tmp_path):
    judged = replace(scored(), judgements=(Judgement("judge", "openai m", "yes", 1.0),))
    tables.trajectories([judged], PLACE)
    tables.metrics("reinforce", [MetricRow(1, 2, "a", 0.5, 3.0)], name="000001")
    row = EvaluationRow("s", 0, "dev", "greedy", "em", None, 0, None, {"chain-1": 1.0}, 0.5)
    tables.evaluations([row])
    tables.run({"status": "running"}, {"name": "x"})
    for table, columns in COLUMNS.items():
        [path] = manifest.current(tmp_path / table)
        assert pq.read_schema(path).names == list(columns)
        assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"
    assert read(tmp_path, "evaluations")[0]["by"] == [("chain-1", 1.0)]
    assert read(tmp_path, "recipes") == [{"run": "r-1", "path": "name", "value": "x"}]


def test_writing_the_same_rows_twice_gives_the_same_bytes(tmp_path):
    for folder in ("a", "b"):
        tables = Tables(tmp_path / folder, "r")
        for iteration in range(3):
            tables.trajectories([scored()], Place("s", iteration, "train", "sampled"))
        tables.compact("s")
    files = [sorted(p for p in (tmp_path / x).rglob("*") if p.is_file()) for x in "ab"]
    assert [p.relative_to(tmp_path / "a") for p in files[0]] == [
        p.relative_to(tmp_path / "b") for p in files[1]
    ]
    assert [p.read_bytes() for p in files[0]] == [p.read_bytes() for p in files[1]]


def test_metrics_of_one_evaluation_do_not_overwrite_each_other(tables, tmp_path):
    for metric in ("exact_match", "token_f1"):
        tables.evaluations([EvaluationRow("s", 0, "dev", "greedy", metric, 0.5, 2, 0.5, {}, 0.0)])
    assert [row["metric"] for row in read(tmp_path, "evaluations")] == ["exact_match", "token_f1"]


def test_stage_names_cannot_leave_the_folder_or_meet_each_other(tables, tmp_path):
    for stage in ("../../out", "a", "a.b", "a-b", "ä+"):
        tables.metrics(stage, [MetricRow(0, 0, stage, 1.0, 0.0)], name="x")
    tables.compact("a")
    assert tables.lost == []
    assert {p.parent for p in tmp_path.rglob("*.parquet")} == {tmp_path / "metrics"}
    names = sorted(row["name"] for row in read(tmp_path, "metrics"))
    assert names == sorted(["../../out", "a", "a.b", "a-b", "ä+"])


def test_means_that_do_not_match_the_trajectories_are_a_bug_and_raise(tables):
    with pytest.raises(ValueError, match="shorter"):
        tables.trajectories([scored(), scored()], PLACE, advantage_means=[1.0])


def test_a_folder_that_cannot_be_written_is_said_and_does_not_raise(tmp_path):
    (tmp_path / "metrics").write_text("a file stands where the folder should be")
    tables = Tables(tmp_path, "r")
    tables.metrics("s", [MetricRow(0, 0, "a", 1.0, 0.0)], name="x")
    tables.compact("s")
    assert tables.lost[0].startswith("metrics/s.x.parquet: 1 rows not written: ")


def test_a_value_of_the_wrong_type_is_said_and_does_not_raise(tables):
    tables.trajectories([scored(parts={"exact_match": "high"})], PLACE)
    assert len(tables.lost) == 1
    assert tables.lost[0].startswith("trajectories/reinforce.000003.train.sampled.parquet: 1 rows")


FULL = """
import resource, signal, sys
from pathlib import Path
from tests.tracking.made import scored
from agentrecipes.records import Place
from agentrecipes.tracking.tables import Tables
import pyarrow.parquet
tables = Tables(Path(sys.argv[1]), "r")
tables.trajectories([scored()], Place("s", 0, "train", "sampled"))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a full disk is an error, not a signal
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
tables.trajectories([scored()], Place("s", 1, "train", "sampled"))
tables.compact("s")
print(len(tables.lost), tables.lost[0])
"""


def test_a_full_disk_loses_the_new_rows_says_so_and_keeps_the_old(tmp_path):
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
    command = [sys.executable, "-c", FULL, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ)
    # One for each of the two files, one for each compaction of the two tables that have files.
    count, first = done.stdout.split(" ", 1)
    assert count == "4"
    assert first.startswith("trajectories/s.000001.train.sampled.parquet: 1 rows not written: ")
    assert "File too large" in first
    assert [row["iteration"] for row in read(tmp_path, "trajectories")] == [0]
    assert [p.name for p in tmp_path.rglob("*.tmp")] == []
