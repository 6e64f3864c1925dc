"""Small real runs that several tests read, and copies of them to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from small import trained

QUICK = (
    "rewards=[spread,{name: brief, weight: 0.5}]",
    "evaluation.tasks=3",
    "evaluation.every=0",
    "stages.imitate.steps=2",
    "stages.imitate.demonstrations.count=8",
    "stages.imitate.tripwires.dead_type=null",
)
RUNS = {
    "grpo": ("stages.reinforce.algorithm.name=grpo",),
    "weighted": ("stages.reinforce.algorithm.name=grpo", "rewards[1].weight=4.0"),
    "ppo": ("stages.reinforce.algorithm.name=ppo",),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    """A folder of finished runs: `grpo`, `weighted` with another reward weight, and `ppo`."""
    folder = tmp_path_factory.mktemp("runs")
    for name, overrides in RUNS.items():
        assert trained(folder / name, [*QUICK, *overrides])["status"] == "finished"
    return folder


@pytest.fixture
def copied(runs, tmp_path):
    """Copy a run, to change what it has stored."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(runs / name, tmp_path / "runs" / name))

    return copy
