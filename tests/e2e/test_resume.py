"""A run that was stopped and resumed leaves what an uninterrupted one leaves, bit for bit."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import torch
from safetensors.torch import load_file
from small import experiment, small

from agentrecipes.experiment import run
from agentrecipes.training import checkpoints
from agentrecipes.training.signals import StopFlag

TIMES = {"seconds", "engine_seconds", "tool_seconds", "run", "wall_seconds", "dir"}


class StopAfter:
    """Asks the run to stop once a stage has reached a step."""

    def __init__(self, stop: StopFlag, stage: str, step: int) -> None:
        self._stop, self._wanted, self._stage, self._name = stop, step, "", stage

    def stage(self, name, algorithm, total) -> None:
        self._stage = name

    def advance(self, step, figures) -> None:
        if self._stage == self._name and step >= self._wanted:
            self._stop.asked = True

    def evaluation(self, row) -> None: ...

    def note(self, text) -> None: ...


def interrupted(folder: Path, stage: str, step: int, *overrides: str) -> str:
    """The status of a run that is asked to stop after a step of a stage."""
    stop = StopFlag()
    return run(experiment(small(*overrides), folder), StopAfter(stop, stage, step), stop=stop)[
        "status"
    ]


def interrupted_again(folder: Path, stage: str, step: int, *overrides: str) -> str:
    """The status of an interrupted run that goes on, and is asked to stop once more."""
    stop = StopFlag()
    watcher = StopAfter(stop, stage, step)
    return run(experiment(small(*overrides), folder), watcher, stop=stop, resume=True)["status"]


def rows(folder: Path, table: str) -> list[dict]:
    """A table's rows without times and run names, in a fixed order."""
    found = [
        r
        for f in sorted((folder / "tables" / table).glob("*.parquet"))
        for r in pq.read_table(f).to_pylist()
    ]
    kept = [
        {k: v for k, v in row.items() if k not in TIMES}
        for row in found
        if not str(row.get("name", "")).startswith("time/")
    ]
    return sorted(kept, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def same(one: Path, other: Path) -> None:
    first, second = (
        load_file(one / "model/model.safetensors"),
        load_file(other / "model/model.safetensors"),
    )
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    for table in ("trajectories", "turns", "metrics", "evaluations"):
        expected = rows(one, table)
        assert expected
        assert rows(other, table) == expected, table


def test_resuming_at_the_end_of_an_iteration_equals_the_uninterrupted_run(tmp_path):
    whole = run(experiment(small(), tmp_path / "whole"))
    assert whole["status"] == "finished"
    folder = tmp_path / "cut"
    assert interrupted(folder, "reinforce", 2) == "interrupted"
    again = run(experiment(small(), folder), resume=True)
    assert again["status"] == "finished"
    same(tmp_path / "whole", folder)
    values = [[row["value"] for row in each["evaluations"]] for each in (whole, again)]
    assert values[0] == values[1]


def test_resuming_within_imitation_equals_the_uninterrupted_run(tmp_path):
    overrides = ["stages.reinforce.iterations=1", "stages.imitate.steps=23", "evaluation.every=0"]
    run(experiment(small(*overrides), tmp_path / "whole"))
    folder = tmp_path / "cut"
    assert interrupted(folder, "imitate", 10, *overrides) == "interrupted"
    assert run(experiment(small(*overrides), folder), resume=True)["status"] == "finished"
    same(tmp_path / "whole", folder)


def test_what_a_stage_learns_beside_the_policy_is_resumed_too(tmp_path):
    """A learned balance of imitation, and a critic on a network of its own."""
    overrides = [
        "stages.imitate.algorithm.thought_end=</search>",
        "stages.imitate.algorithm.balance={start: 0.6}",
        "stages.imitate.algorithm.observation_weight=0",
        "stages.imitate.steps=23",
        "stages.reinforce.algorithm.value_trunk=own",
        "rewards=[spread]",
        "stages.reinforce.iterations=2",
        "evaluation.every=0",
    ]
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    run(experiment(small(*overrides), whole))
    assert interrupted(cut, "imitate", 10, *overrides) == "interrupted"
    state = checkpoints.newest(cut / "checkpoints").state["policy"]
    assert float(state["own"]["balance"]) != 0.0  # ln(.3/.3): it begins at 0
    assert interrupted_again(cut, "reinforce", 1, *overrides) == "interrupted"
    state = checkpoints.newest(cut / "checkpoints").state["policy"]
    assert state["own"] == {}
    trunk = {n.removeprefix("trunk."): x for n, x in state["value_head"].items() if "trunk." in n}
    assert any(not torch.equal(trunk[name], x) for name, x in state["model"].items())
    assert run(experiment(small(*overrides), cut), resume=True)["status"] == "finished"
    same(whole, cut)
    found = [row["value"] for row in rows(whole, "metrics") if row["name"] == "loss/balance"]
    assert len(found) == 23
    assert all(0.3 < value < 0.9 for value in found)
    assert len(set(found)) > 1


def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(tmp_path):
    for done in (1, 2):
        checkpoints.save(
            tmp_path, {"weights": torch.full((2,), float(done))}, stage=0, done=done, keep=2
        )
    newest = tmp_path / "00-00000002.ckpt"
    newest.write_bytes(newest.read_bytes()[:-1])
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found.state["weights"].tolist() == [1.0, 1.0]
    assert found.passed_over == (
        "00-00000002.ckpt: its hash differs from the one it was saved with",
    )


def test_only_the_newest_checkpoints_are_kept(tmp_path):
    for done in range(4):
        checkpoints.save(tmp_path, {"done": done}, stage=0, done=done, keep=2)
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == [
        "00-00000002.ckpt",
        "00-00000003.ckpt",
    ]


def test_a_folder_without_checkpoints_has_none(tmp_path):
    assert checkpoints.newest(tmp_path) is None
