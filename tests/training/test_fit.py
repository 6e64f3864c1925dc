"""What Lightning says that helps nobody is not shown; a warning of anybody else's is."""

from __future__ import annotations

import os
import warnings

import pytest
import torch
from small import Quiet, weights_after

GRPO = ("stages.reinforce.algorithm.name=grpo", "stages.reinforce.iterations=1")


def test_a_slurm_that_did_not_start_the_run_is_no_warning(tmp_path, monkeypatch):
    srun = tmp_path / "bin" / "srun"
    srun.parent.mkdir()
    srun.write_text("#!/bin/sh\n")
    srun.chmod(0o755)
    monkeypatch.setenv("PATH", f"{srun.parent}:{os.environ['PATH']}")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert weights_after(tmp_path / "run", *GRPO)


class Anxious(Quiet):
    """An observer that warns."""

    def iteration(self, after, collected, figures) -> None:
        warnings.warn("look at this", stacklevel=2)


def test_another_warning_is_shown(tmp_path):
    with pytest.warns(UserWarning, match="look at this"):
        weights = weights_after(tmp_path / "run", *GRPO, observer=Anxious())
    assert all(torch.isfinite(each).all() for each in weights.values())
