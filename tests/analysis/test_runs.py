from __future__ import annotations

import json
import os
import subprocess
import sys

from agentrecipes.analysis.runs import runs


def folder(root, name, *, age, summary=None):
    path = root / name
    path.mkdir()
    (path / "recipe.yaml").write_text("name: demo\n")
    os.utime(path / "recipe.yaml", (1000.0 - age, 1000.0 - age))
    if summary is not None:
        (path / "summary.json").write_text(summary)
    return path


def test_runs_are_listed_newest_first_with_their_last_evaluation(tmp_path):
    evaluations = [{"metric": "exact_match", "value": 0.1}, {"metric": "token_f1", "value": 0.9}]
    summary = {"status": "finished", "recipe_hash": "abc", "seed": 7, "wall_seconds": 2.5}
    old = folder(
        tmp_path, "old", age=9, summary=json.dumps({**summary, "evaluations": evaluations})
    )
    folder(tmp_path, "new", age=1)
    (tmp_path / "mlartifacts").mkdir()
    first, second = runs(tmp_path)
    assert (first["run"], first["status"], first["value"]) == ("new", "unfinished", None)
    assert second == {
        "run": "old",
        "dir": str(old),
        "status": "finished",
        "recipe_hash": "abc",
        "seed": 7,
        "profile": None,
        "wall_seconds": 2.5,
        "metric": "token_f1",
        "value": 0.9,
    }


def test_a_summary_that_cannot_be_read_does_not_hide_the_run(tmp_path):
    folder(tmp_path, "broken", age=1, summary="{")
    folder(tmp_path, "list", age=2, summary="[]")
    assert [run["status"] for run in runs(tmp_path)] == ["unreadable", "unreadable"]


def test_there_are_no_runs_where_nothing_has_run(tmp_path):
    assert runs(tmp_path / "nowhere") == []


def test_listing_and_querying_import_nothing_heavy(tmp_path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from agentrecipes.analysis.query import query\n"
        "from agentrecipes.analysis.runs import runs\n"
        "runs(Path(sys.argv[1])), query('curve', Path(sys.argv[1]))\n"
        "heavy = {'torch', 'transformers', 'lightning', 'mlflow', 'optuna', 'pyarrow'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_ten_thousand_runs_are_listed_each_once(tmp_path):
    count = 10_000
    summary = json.dumps({"status": "finished", "evaluations": [{"metric": "m", "value": 0.5}]})
    for number in range(count):
        folder(tmp_path, f"r{number:05d}", age=number, summary=summary)
    found = runs(tmp_path)
    assert [run["run"] for run in found] == [f"r{number:05d}" for number in range(count)]
    assert {(run["status"], run["value"]) for run in found} == {("finished", 0.5)}
