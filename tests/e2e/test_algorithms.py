"""Every algorithm trains in the small recipe: its weights move, and only where they should."""

from __future__ import annotations

import json
import math

import pyarrow.parquet as pq
import pytest
import torch
from small import Quiet, trained, weights_after, weights_before

from agentrecipes.components import build, names

COLLECTING = [n for n in names("algorithm") if not build("algorithm", n).needs.demonstrations]
GROUPED = [name for name in COLLECTING if build("algorithm", name).needs.groups]
TURNS = [name for name in COLLECTING if build("algorithm", name).needs.turns]


def two_iterations(name: str) -> tuple[str, ...]:
    fields = {"name": name}
    if name == "gigpo":  # discounted, equal rewards differ by how many turns they are away
        fields["gamma"] = 1.0
    if name == "rft":  # whatever has a few of the letters that the reward counts
        fields["at_least"] = 0.02
    return (
        f"stages.reinforce.algorithm={json.dumps(fields)}",
        "stages.reinforce.iterations=2",
        "stages.reinforce.optimizer.learning_rate=1",
    )


def moved(before: dict, after: dict) -> float:
    return max(float((after[name] - tensor).abs().max()) for name, tensor in before.items())


@pytest.mark.parametrize("name", COLLECTING)
def test_an_algorithm_moves_the_weights_in_both_iterations(tmp_path, name):
    observer, common = Quiet(), two_iterations(name)
    before = weights_before(tmp_path / "start", *common)
    after = weights_after(tmp_path / "run", *common, observer=observer)
    assert moved(before, after) > 1e-6
    assert all(torch.isfinite(tensor).all() for tensor in after.values())
    assert len(observer.figures) == 2
    for figures in observer.figures:
        assert figures.get("loss/skipped_steps", 0.0) == 0.0
        assert figures["policy/gradient_norm_max"] > 0.0
        assert all(math.isfinite(value) for value in figures.values())


@pytest.mark.parametrize("name", GROUPED)
def test_equal_rewards_move_nothing_where_attempts_are_compared(tmp_path, name):
    observer, common = Quiet(), (*two_iterations(name), "rewards=[constant]")
    before = weights_before(tmp_path / "start", *common)
    after = weights_after(tmp_path / "run", *common, observer=observer)
    assert moved(before, after) == 0.0
    assert [figures["loss/skipped_steps"] for figures in observer.figures] == [1.0, 1.0]


@pytest.mark.parametrize("name", TURNS)
def test_an_algorithm_of_turns_runs_from_the_first_stage_to_the_last_evaluation(tmp_path, name):
    overrides = [*two_iterations(name), "rewards=[spread]", "stages.imitate.steps=2"]
    summary = trained(tmp_path / "run", overrides)
    assert summary["status"] == "finished"
    assert [stage["algorithm"] for stage in summary["stages"]] == ["sft", name]
    assert summary["stages"][1]["iterations"] == 2
    files = sorted((tmp_path / "run" / "tables" / "trajectories").glob("*.parquet"))
    rows = [row for file in files for row in pq.read_table(file).to_pylist()]
    means = [row["advantage_mean"] for row in rows if row["split"] == "train"]
    assert len(means) == 2 * 16
    assert any(means)


def test_imitation_moves_the_weights(tmp_path):
    common = ("stages.imitate.steps=2",)
    after = weights_after(tmp_path / "run", *common, stage=0)
    assert moved(weights_before(tmp_path / "start", *common), after) > 1e-6
