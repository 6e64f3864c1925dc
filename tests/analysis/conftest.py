"""Small real runs that several tests read, and copies of them to spoil."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small import trained

from agentrecipes.tracking import manifest
from agentrecipes.tracking.columns import schema

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
    "patchy": (
        "stages.reinforce.algorithm.name=gigpo",
        "rewards[0].patchy=true",
        "rewards[0].missing=mask",
    ),
    "ppo": ("stages.reinforce.algorithm.name=ppo",),
}


@pytest.fixture(scope="session")
def runs(tmp_path_factory) -> Path:
    """A folder of finished runs: `grpo`, `weighted` with another reward weight, `patchy`, `ppo`."""
    folder = tmp_path_factory.mktemp("runs")
    for name, overrides in RUNS.items():
        assert trained(folder / name, [*QUICK, *overrides])["status"] == "finished"
    return folder


def changed(folder: Path, table: str, change) -> None:
    """Change the rows of one of a run's tables; `change` gets them all and edits them in place."""
    for path in manifest.current(folder / "tables" / table):
        rows = pq.read_table(path).to_pylist()
        change(rows)
        pq.write_table(pa.Table.from_pylist(rows, schema=schema(table)), path)


@pytest.fixture
def copied(runs, tmp_path):
    """Copy a run, to change what it has stored."""

    def copy(name: str) -> Path:
        return Path(shutil.copytree(runs / name, tmp_path / "runs" / name))

    return copy
