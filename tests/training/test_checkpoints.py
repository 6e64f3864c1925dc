"""Checkpoints are whole or not there, and hold nothing but tensors and plain values."""

from __future__ import annotations

import json
import os
import pickle
import resource

import pytest
import torch

from agentrecipes.errors import CheckFailed
from agentrecipes.tracking import replacing
from agentrecipes.training import checkpoints


@pytest.fixture
def small_files():
    """No file may grow beyond 1000 bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_what_was_saved_comes_back(tmp_path):
    state = {"weights": torch.arange(3.0), "position": {"iteration": 4}, "seed": 7}
    path = checkpoints.save(tmp_path, state, stage=1, done=4, keep=2)
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert (found.path, found.passed_over) == (path, ())
    assert path.name == "01-00000004.ckpt"
    assert torch.equal(found.state["weights"], state["weights"])
    assert (found.state["position"], found.state["seed"]) == ({"iteration": 4}, 7)


def test_a_later_stage_is_newer_than_a_longer_one(tmp_path):
    for stage, done in ((0, 1700), (1, 1)):
        checkpoints.save(tmp_path, {"stage": stage}, stage=stage, done=done, keep=2)
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found.state["stage"] == 1


def test_a_checkpoint_whose_facts_are_missing_never_existed(tmp_path):
    path = checkpoints.save(tmp_path, {"done": 1}, stage=0, done=1, keep=2)
    path.with_suffix(".json").unlink()
    assert checkpoints.newest(tmp_path) is None


@pytest.mark.parametrize("facts", ["{", "{}", "[]"])
def test_facts_that_cannot_be_read_are_passed_over(tmp_path, facts):
    checkpoints.save(tmp_path, {"done": 1}, stage=0, done=1, keep=2)
    checkpoints.save(tmp_path, {"done": 2}, stage=0, done=2, keep=2).with_suffix(
        ".json"
    ).write_text(facts)
    found = checkpoints.newest(tmp_path)
    assert found is not None
    assert found.state["done"] == 1
    assert found.passed_over[0].startswith("00-00000002.ckpt: cannot be read")


class Spy:
    """Would run code when it is unpickled."""

    def __reduce__(self) -> tuple:
        return os.mkdir, ("was-here",)


def test_code_in_a_checkpoint_is_not_run_even_with_the_right_hash(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"spy": Spy()}, tmp_path / "00-00000001.ckpt")
    path = checkpoints.save(tmp_path, {}, stage=0, done=2, keep=1)
    data = (tmp_path / "00-00000001.ckpt").read_bytes()
    replacing.write(path, data)
    facts = json.loads(path.with_suffix(".json").read_text())
    facts["sha256"] = checkpoints.hashlib.sha256(data).hexdigest()
    path.with_suffix(".json").write_text(json.dumps(facts))
    with pytest.raises(pickle.UnpicklingError):
        checkpoints.newest(tmp_path)
    assert not (tmp_path / "was-here").exists()


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path, small_files):
    path = tmp_path / "deep" / "file"
    replacing.write(path, b"old")
    with pytest.raises(OSError, match="too large"):
        replacing.write(path, b"x" * 2000)
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]  # no half file takes the space of others


def test_a_checkpoint_that_cannot_be_written_leaves_the_older_ones(tmp_path, small_files):
    with pytest.raises(OSError, match="too large"):
        checkpoints.save(tmp_path, {"x": torch.zeros(1000)}, stage=0, done=2, keep=1)
    assert checkpoints.newest(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_newer_than_the_checkpoint_to_go_on_from_is_removed_with_its_halves(tmp_path):
    for done in (1, 2, 3):
        checkpoints.save(tmp_path, {"done": done}, stage=0, done=done, keep=3)
    damaged = tmp_path / "00-00000003.ckpt"
    damaged.write_bytes(b"half")
    (tmp_path / "00-00000009.ckpt").write_bytes(b"no hash: it never existed")
    (tmp_path / "reference-1.pt").write_bytes(b"another's")
    found = checkpoints.newest(tmp_path)
    assert found is not None
    checkpoints.tidy(tmp_path, found)
    assert sorted(path.name for path in tmp_path.glob("*.ckpt")) == [
        "00-00000001.ckpt",
        "00-00000002.ckpt",
    ]
    assert (tmp_path / "reference-1.pt").exists()
    checkpoints.save(tmp_path, {"done": 4}, stage=0, done=4, keep=1)
    again = checkpoints.newest(tmp_path)
    assert again is not None
    assert again.state["done"] == 4  # the damaged one would have counted as the newest
    checkpoints.tidy(tmp_path, None)
    assert checkpoints.newest(tmp_path) is None


def test_a_checkpoint_whose_hash_cannot_be_written_never_existed(tmp_path, monkeypatch):
    def full(path, data) -> None:
        raise OSError(28, "No space left on device")

    checkpoints.save(tmp_path, {"done": 1}, stage=0, done=1, keep=1)
    monkeypatch.setattr(checkpoints, "write", full)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(tmp_path, {"done": 2}, stage=0, done=2, keep=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "00-00000001.ckpt",
        "00-00000001.json",
    ]


@pytest.mark.parametrize("harm", ["cut", "hash", "gone"])
def test_tensors_that_are_not_what_was_written_are_refused(tmp_path, harm):
    path = tmp_path / "x.pt"
    checkpoints.write_tensors(path, {"a": torch.arange(3.0)})
    if harm == "cut":
        path.write_bytes(path.read_bytes()[:-1])
    else:
        path.with_suffix(".sha256").unlink()
        if harm == "gone":
            path.unlink()
    with pytest.raises(CheckFailed, match=r"x\.pt"):
        checkpoints.read_tensors(path)


def test_named_tensors_come_back_bit_for_bit_and_are_copies(tmp_path):
    weight = torch.randn(2, 3, requires_grad=True)
    checkpoints.write_tensors(tmp_path / "x.pt", {"a": weight, "b": weight})
    found = checkpoints.read_tensors(tmp_path / "x.pt")
    assert torch.equal(found["a"], weight)
    assert torch.equal(found["b"], weight)
    assert not found["a"].requires_grad
