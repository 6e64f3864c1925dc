"""A real MLflow store, read back by a second process."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from typing import Any

import pytest
from tests.tracking.made import scored, turn

from agentrecipes.records import Judgement, Place
from agentrecipes.tracking.mlflow.spans import trace
from agentrecipes.tracking.mlflow.tracker import MlflowTracker, environment
from agentrecipes.tracking.protocol import DataInput, NullTracker, RunInfo

PLACE = Place("reinforce", 10, "dev", "sampled")
PATIENT = {"patience_seconds": 300.0}  # a busy machine takes minutes to make a database
RECIPE = {"name": "demo", "seed": 7, "stages": [{"name": "reinforce", "note": "x" * 7000}]}
READER = """
import json, sys
from mlflow import MlflowClient
client = MlflowClient(tracking_uri=sys.argv[1])
found = {}
for experiment in client.search_experiments():
    for run in client.search_runs([experiment.experiment_id]):
        identity = run.info.run_id
        traces = client.search_traces(locations=[experiment.experiment_id], run_id=identity)
        found[run.info.run_name] = {
            "id": identity,
            "experiment": experiment.name,
            "status": run.info.status,
            "params": run.data.params,
            "tags": run.data.tags,
            "metrics": {
                name: [[m.step, m.value] for m in client.get_metric_history(identity, name)]
                for name in run.data.metrics
            },
            "artifacts": sorted(item.path for item in client.list_artifacts(identity)),
            "inputs": [item.dataset.to_dictionary() for item in run.inputs.dataset_inputs],
            "traces": [
                {
                    "tags": one.info.tags,
                    "state": one.info.state.value,
                    "spans": [
                        [span.name, span.span_type, span.parent_id is None, span.outputs]
                        for span in one.data.spans
                    ],
                }
                for one in traces
            ],
        }
for name in sys.argv[2:]:
    from mlflow.artifacts import download_artifacts
    import mlflow
    mlflow.set_tracking_uri(sys.argv[1])
    version = client.get_model_version_by_alias(*name.split("@"))
    folder = download_artifacts(f"models:/{name}")
    weights = open(f"{folder}/weights").read()
    found[name] = [version.version, version.run_id, weights]
    found[name].append(len(client.search_model_versions(f"name = '{name.split('@')[0]}'")))
print("FOUND" + json.dumps(found))
"""


def read_back(runs_dir, *models: str):
    """What another process finds in the store, by run name, and of registered models."""
    command = [sys.executable, "-c", READER, f"sqlite:///{runs_dir}/mlflow.db", *models]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=True)
    return json.loads(done.stdout.partition("FOUND")[2])


def info(folder, run, **more: Any):
    (folder / "recipe.yaml").write_text("name: demo\n")
    values = {"experiment": "demo", "recipe": RECIPE, "recipe_hash": "abc", "seed": 7, **more}
    return RunInfo(run=run, recipe_file=folder / "recipe.yaml", **values)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a store, which takes seconds to make, and four runs told to it."""
    folder = tmp_path_factory.mktemp("store")
    tell_whole(folder)
    tell_failed(folder)
    tell_long(folder)
    for steps in (range(3), range(1, 5)):
        tell_resumed(folder, steps)
    for run, attempts in (("first", 1), ("second", 60), ("second", 60)):
        tell_registered(folder, run, attempts)
    return folder


@pytest.fixture(scope="module")
def found(made):
    return read_back(made, "searcher@best")


def tell_whole(folder):
    """A run with a bit of everything."""
    (folder / "model").mkdir()
    (folder / "model" / "weights").write_text("w")
    data = DataInput("world", "d1", "world", "train", 30)
    more = {"profile": "smol", "git": "1234-dirty", "lock_hash": "f00", "datasets": (data,)}
    tracker = MlflowTracker(folder, traces=2, **PATIENT)
    tracker.start(info(folder, "whole", **more))
    for step in range(3):
        tracker.metrics({"reward/total": step / 4, "odd name!": 1.0}, step)
    tracker.trace([scored("a"), scored("a", 1), scored("b", total=0.0)], PLACE)
    tracker.artifact(folder / "model")
    tracker.finish("finished")
    assert tracker.lost == []
    assert tracker.run_id is not None


def tell_failed(folder):
    """A run that fails, one of whose artifacts is not there."""
    tracker = MlflowTracker(folder, **PATIENT)
    tracker.start(info(folder, "failed"))
    tracker.artifact(folder / "nothing")
    tracker.finish("failed")
    assert len(tracker.lost) == 1
    assert str(folder / "nothing") in tracker.lost[0]


def tell_long(folder):
    """What a default run of 150 s tells, interrupted at its end."""
    tracker = MlflowTracker(folder, **PATIENT)
    tracker.start(info(folder, "long"))
    for step in range(100):
        tracker.metrics({f"m/{k}": step / 8 for k in range(40)}, step)
        if step % 7 == 0:
            tracker.trace([scored(f"t{k}") for k in range(6)], Place("s", step, "dev", "greedy"))
    tracker.finish("interrupted")
    assert tracker.lost == []


def tell_registered(folder, run, attempts):
    """A run all of whose trajectories are traces, some judged, and whose model gets a name."""
    model = folder / run / "model"
    model.mkdir(parents=True, exist_ok=True)
    (model / "weights").write_text(run)
    tracker = MlflowTracker(folder, traces=None, registered_as="searcher@best", **PATIENT)
    tracker.start(info(folder, run))
    said = Judgement("exact_match", "openai m", "Verdict: no", 0.0, seconds=0.25)
    judged = replace(scored("judged"), judgements=(said, replace(said, reply=None, value=None)))
    others = [scored(f"t{n // 4}", n % 4) for n in range(attempts - 1)]
    tracker.trace([judged, *others], PLACE)
    tracker.model(model)
    tracker.finish("finished")
    assert tracker.lost == []


def tell_resumed(folder, steps):
    tracker = MlflowTracker(folder, **PATIENT)
    tracker.start(info(folder, "resumed"))
    for step in steps:
        tracker.metrics({"loss": step / 2}, step)
    tracker.trace([scored("a")], PLACE)
    tracker.finish("stopped")
    assert tracker.lost == []


def test_everything_given_is_found_by_another_process(found):
    run = found["whole"]
    assert run["metrics"]["reward/total"] == [[0, 0.0], [1, 0.25], [2, 0.5]]
    assert "odd name_" in run["metrics"]
    assert run["params"]["seed"] == "7"
    assert run["params"]["stages.reinforce.note"] == "x" * 5999 + "…"
    expected = {"recipe_hash": "abc", "seed": "7", "profile": "smol", "git": "1234-dirty"}
    assert expected.items() <= run["tags"].items()
    assert run["tags"]["lock"] == "f00"
    assert run["artifacts"] == ["model", "recipe.yaml"]
    assert run["inputs"][0]["digest"] == "d1"


def test_a_trace_is_a_tree_of_turns_tools_and_rewards(found):
    # Two traces were asked for: one attempt of each task before a second attempt of any.
    traces = {trace["tags"]["task"]: trace for trace in found["whole"]["traces"]}
    assert sorted(traces) == ["a", "b"]
    assert traces["a"]["state"] == "OK"
    assert [span[:3] for span in traces["a"]["spans"]] == [
        ["dev sampled a", "AGENT", True],
        ["turn 0", "LLM", False],
        ["search", "TOOL", False],
        ["turn 1", "LLM", False],
        ["reward exact_match", "EVALUATOR", False],
    ]
    assert traces["a"]["spans"][0][3] == {"answer": "Rome", "stop": "answered", "total": 1.0}


@pytest.mark.parametrize(
    ("run", "status", "tag"),
    [
        ("whole", "FINISHED", "finished"),
        ("failed", "FAILED", "failed"),
        ("long", "KILLED", "interrupted"),
        ("resumed", "FAILED", "stopped"),
    ],
)
def test_the_end_of_a_run_is_its_status(found, run, status, tag):
    assert (found[run]["status"], found[run]["tags"]["status"]) == (status, tag)


def test_no_metric_and_no_trace_of_a_long_run_is_lost(found):
    run = found["long"]
    assert {len(history) for history in run["metrics"].values()} == {100}
    assert len(run["metrics"]) == 40
    assert len(run["traces"]) == 90  # 15 evaluations of 6


def test_on_request_every_trajectory_of_an_evaluation_is_a_trace_with_its_judges(found):
    for run, attempts in (("first", 1), ("second", 60)):  # the second ended twice
        traces = found[run]["traces"]
        assert len(traces) == attempts
        named = {(each["tags"]["task"], each["tags"]["attempt"]) for each in traces}
        assert len(named) == attempts
        [judged] = [each for each in traces if each["tags"]["task"] == "judged"]
        said = {name: [] for name, *_ in judged["spans"]}
        for name, *_, outputs in judged["spans"]:
            said[name].append(outputs)
        assert said["reward exact_match"] == [{"value": 1.0}]
        replies = [outputs["reply"] for outputs in said["judge openai m"]]
        assert sorted(replies, key=str) == [None, "Verdict: no"]


def test_what_a_judge_said_stands_under_the_reward_that_asked():
    said = Judgement("b", "openai m", "Verdict: no", 0.0, seconds=0.25)
    judged = replace(scored(parts={"a": 1.0, "b": 0.0}), judgements=(said, replace(said, part="?")))
    spans = trace(judged, PLACE, run="r", end=10**9)["spans"]
    names = {span["id"]: span["name"] for span in spans}
    told = [(each["name"], names[each["parent"]]) for each in spans[-4:]]
    root = "dev sampled t0"
    judge = "judge openai m"
    assert told == [("reward a", root), ("reward b", root), (judge, "reward b"), (judge, root)]
    reward, asked = spans[-3], spans[-2]
    assert (reward["start"], asked["start"]) == (750_000_000, 750_000_000)  # 0.25 s before the end


def test_a_registered_model_is_loaded_by_its_alias(found):
    # Two runs made a version each, although one of them ended twice; the alias went to the later.
    version, run, weights, versions = found["searcher@best"]
    assert (run, weights, versions) == (found["second"]["id"], "second", 2)
    assert str(version) == "2"


def test_a_resumed_run_goes_on_without_doubled_values_or_traces(found):
    assert found["resumed"]["metrics"]["loss"] == [[n, n / 2] for n in range(5)]
    assert len(found["resumed"]["traces"]) == 1


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.tracking.test_mlflow import MlflowTracker, info
tracker = MlflowTracker(Path(sys.argv[1]))
tracker.start(info(Path(sys.argv[1]), "gone"))
tracker.metrics({"loss": 0.5}, 0)
tracker.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_training_process_leaves_its_run_marked_killed(made):
    done = subprocess.run([sys.executable, "-c", KILLED, str(made)], check=False)
    assert done.returncode == -9
    deadline = time.monotonic() + 20.0
    database = sqlite3.connect(f"file:{made}/mlflow.db?mode=ro", uri=True)
    query = "select status from runs where name = 'gone'"
    while database.execute(query).fetchone() != ("KILLED",):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    database.close()


TOGETHER = """
import sys
from pathlib import Path
from tests.tracking.test_mlflow import PATIENT, MlflowTracker, info
folder = Path(sys.argv[1]) / sys.argv[2]
folder.mkdir()
tracker = MlflowTracker(Path(sys.argv[1]), **PATIENT)
sys.stdin.read()
tracker.start(info(folder, sys.argv[2]))
tracker.finish("finished")
print(tracker.lost)
"""


def test_runs_that_start_together_where_there_is_no_store_yet_are_all_in_it(tmp_path):
    names = ["one", "two", "three"]
    words = [sys.executable, "-c", TOGETHER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    started = [subprocess.Popen([*words, name], **pipes) for name in names]
    for each in started:
        each.stdin.close()  # now
    assert [each.stdout.read() for each in started] == ["[]\n"] * 3
    for each in started:
        each.stdout.close()
        assert each.wait() == 0
    assert set(read_back(tmp_path)) == set(names)


def test_a_store_that_goes_away_in_the_middle_is_said_and_stops_nothing(tmp_path):
    tracker = MlflowTracker(tmp_path)
    tracker.start(info(tmp_path, "halfway"))
    tracker.metrics({"loss": 0.5}, 0)
    tracker.flush()
    assert tracker.lost == []
    (tmp_path / "mlflow.db").unlink()
    started = time.monotonic()
    tracker.metrics({"loss": 0.25}, 1)
    tracker.trace([scored("a")], PLACE)
    tracker.finish("finished")
    assert time.monotonic() - started < 25.0
    # Metrics are sent in batches, so that they may come after the traces.
    assert {line.split(" not stored: ")[0] for line in tracker.lost} == {
        "mlflow: 1 metric values",
        "mlflow: 1 traces",
        "mlflow: the end of the run",
    }
    assert len(tracker.lost) == 3
    assert "was removed or replaced during the run" in tracker.lost[0]


def test_a_locked_database_costs_the_patience_and_no_more(made):
    tracker = MlflowTracker(made, patience_seconds=3.0)
    holder = sqlite3.connect(made / "mlflow.db", isolation_level=None)
    holder.execute("begin exclusive")
    try:
        started = time.monotonic()
        tracker.start(info(made, "waiting"))
        tracker.metrics({"loss": 0.5}, 0)
        tracker.finish("finished")
        assert time.monotonic() - started < 6.0
    finally:
        holder.rollback()
        holder.close()
    assert [line.split(" not stored: ")[0] for line in tracker.lost] == [
        "mlflow: the run, its parameters and tags",
        "mlflow: 1 metric values of steps 0 to 0",
        "mlflow: the end of the run (finished)",
    ]
    assert tracker.run_id is None


def test_a_server_nobody_answers_for_is_said_without_its_password(tmp_path):
    uri = "http://user:secret@127.0.0.1:9"
    tracker = MlflowTracker(tmp_path, uri=uri, patience_seconds=4.0)
    tracker.start(info(tmp_path, "nowhere"))
    tracker.metrics({"loss": 0.5}, 0)
    tracker.finish("failed")
    assert tracker.lost
    assert "secret" not in " ".join(tracker.lost)
    assert tracker.run_id is None


def test_the_environment_switches_telemetry_off_and_keeps_the_users_own(monkeypatch):
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "5")
    monkeypatch.setenv("PYTHONPATH", "/own")
    made = environment()
    assert (made["MLFLOW_DISABLE_TELEMETRY"], made["DO_NOT_TRACK"]) == ("true", "true")
    assert made["MLFLOW_HTTP_REQUEST_MAX_RETRIES"] == "5"
    assert made["PYTHONPATH"].startswith(f"/own{os.pathsep}")


def test_mlflow_is_never_imported_by_the_training_process(tmp_path):
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from agentrecipes.tracking.mlflow.tracker import MlflowTracker\n"
        "MlflowTracker(Path(sys.argv[1])).metrics({'a': 1.0}, 0)\n"
        "print(sorted({'mlflow', 'torch', 'duckdb', 'pyarrow'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_tracker_of_nothing_takes_everything(tmp_path):
    tracker = NullTracker()
    tracker.start(info(tmp_path, "none"))
    tracker.metrics({"a": 1.0}, 0)
    tracker.trace([scored(turns=(turn((1,), (2,)),))], PLACE)
    tracker.artifact(tmp_path)
    tracker.flush()
    tracker.finish("finished")
    assert (tracker.run_id, tracker.lost) == (None, [])
