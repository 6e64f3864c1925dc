"""The light commands start fast because they never import what is heavy."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.shape.source import ROOT
from tests.tracking.made import store

from agentrecipes.cli.main import COMMANDS

HEAVY = ("torch", "transformers", "lightning", "mlflow", "optuna", "vllm", "deepspeed")
RECIPE = str(ROOT / "recipes" / "rag_r1.yaml")
LIGHT = (
    ("--help",),
    *((name, "--help") for name in COMMANDS),
    ("check", RECIPE),
    ("check", RECIPE, "--json"),
    ("show", RECIPE),
    ("list",),
    ("list", "reward"),
    ("curriculum", RECIPE, "curriculum=success_band", "--iterations", "2"),
    ("plan", RECIPE),
    ("schema",),
    ("new", "starter"),
    ("runs",),
    ("query",),
    ("query", "select count(*) from runs"),
    ("doctor",),
)
# A lazy module stands in sys.modules under its own name without having been run; what has been run
# brings submodules along.
PROGRAM = """
import sys
from agentrecipes.cli.main import main
try:
    main(sys.argv[2:])
except SystemExit as end:
    code = end.code
names = sys.argv[1].split(",")
heavy = [name for name in names if any(m.startswith(name + ".") for m in sys.modules)]
print(f"exit={code} heavy={heavy}", file=sys.stderr)
"""


@pytest.mark.parametrize("words", LIGHT, ids=lambda words: " ".join(words).replace(str(ROOT), ""))
def test_a_light_command_imports_nothing_heavy(words, tmp_path):
    command = [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines()[-1:] == ["exit=0 heavy=[]"], done.stderr[-2000:]


def test_comparing_two_runs_imports_nothing_heavy(tmp_path):
    store(tmp_path / "runs")
    for name in ("demo-0", "demo-1"):
        (tmp_path / "runs" / name / "recipe.yaml").write_text("name: demo\n")
    command = [sys.executable, "-c", PROGRAM, ",".join(HEAVY), "diff", "demo-0", "demo-1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stderr.splitlines()[-1:] == ["exit=0 heavy=[]"], done.stderr[-2000:]
    assert "first divergent token: none" in done.stdout


def cpu_seconds(words, cwd):
    """Processor time of a command in a fresh process; other work on the machine hardly moves it."""
    before = os.times()
    subprocess.run(
        [sys.executable, "-c", "from agentrecipes.cli.main import main; main()", *words],
        cwd=cwd,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    after = os.times()
    return (
        after.children_user + after.children_system - before.children_user - before.children_system
    )


@pytest.mark.parametrize(("words", "limit"), [(("--help",), 0.5), (("check", RECIPE), 2.0)])
def test_a_light_command_answers_at_once(words, limit, tmp_path):
    assert min(cpu_seconds(words, tmp_path) for _ in range(3)) < limit
