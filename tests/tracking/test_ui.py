"""MLflow's pages on the store of the runs: there, for this machine alone, and gone afterwards."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from agentrecipes.errors import AgentRecipesError
from agentrecipes.tracking.mlflow.ui import HOST, served

PROGRAM = "from agentrecipes.cli.main import main; main()"


def ui(folder, *words: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROGRAM, "ui", "--runs-dir", str(folder), *map(str, words)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_the_pages_show_the_store_of_the_runs_until_ctrl_c(tmp_path):
    (tmp_path / "mlflow.db").touch()  # an empty database: MLflow makes its tables
    process = ui(tmp_path, "--json")
    try:
        said = ""
        while not said.endswith("}\n"):
            line = process.stdout.readline()
            assert line, process.stderr.read()
            said += line
        told = json.loads(said)
        assert told["url"].startswith("http://127.0.0.1:")
        assert told["store"] == f"sqlite:///{tmp_path}/mlflow.db"
        query = "/api/2.0/mlflow/experiments/get-by-name?experiment_name=Default"
        with urllib.request.urlopen(told["url"] + query, timeout=30) as answer:
            assert json.load(answer)["experiment"]["name"] == "Default"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
        with socket.socket() as probe:
            assert probe.connect_ex((HOST, int(told["url"].rpartition(":")[2]))) != 0
    finally:
        process.kill()
        process.communicate()


def test_where_nothing_has_run_it_says_so(tmp_path):
    process = ui(tmp_path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "there is no MLflow store in" in said
    assert "Run a recipe first" in said


def test_a_port_that_is_taken_is_named_before_anything_starts(tmp_path):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(AgentRecipesError, match=f"port {port}: Address already in use"),
            served("sqlite://", tmp_path / "log", port),
        ):
            raise AssertionError("it must not come up")
    assert not (tmp_path / "log").exists()
