"""The same steps as one process, and as two under every strategy: losses, resumes, exports.

The data, uneven lengths and two micro-batches on each rank, are in fitted.py.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from fitted import STEPS, report

from agentrecipes.errors import MissingExtra, RecipeError
from agentrecipes.recipe.schema import Trainer
from agentrecipes.training import ranks, strategies
from agentrecipes.training.strategies import OWN_RANK
from tolerances import LOGP_OF_EXPORT, LOSS_BY_STRATEGY

PATIENCE_SECONDS = 290.0


@cache
def alone(folder: Path) -> dict[str, Any]:
    """What one process says."""
    return report("single", folder, 1)


@pytest.fixture(scope="session")
def single(tmp_path_factory) -> dict[str, Any]:
    return alone(tmp_path_factory.mktemp("single"))


def by_two(strategy: str, folder: Path) -> dict[str, Any]:
    """What two processes under a strategy say."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), os.environ.get("PYTHONPATH", "")]
    common = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(paths),
        "OMP_NUM_THREADS": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": port,
        "WORLD_SIZE": "2",
        "NODE_RANK": "0",
    }
    started = []
    for rank in ("0", "1"):
        own = {**common, OWN_RANK: rank, "RANK": rank, "LOCAL_RANK": rank}
        with (folder / f"{rank}.log").open("wb") as log:
            command = [sys.executable, str(here / "fitted.py"), strategy, str(folder)]
            started.append(subprocess.Popen(command, env=own, stdout=log, stderr=log))
    try:
        for process in started:
            process.wait(PATIENCE_SECONDS)
    finally:
        for process in started:
            process.kill()
            process.wait()
    said = "\n".join((folder / f"{rank}.log").read_text()[-3000:] for rank in (0, 1))
    assert [process.returncode for process in started] == [0, 0], said
    told: dict[str, Any] = json.loads((folder / "told.json").read_text())
    return told


@pytest.mark.parametrize(
    "strategy",
    [
        "ddp",
        *(pytest.param(f"deepspeed_{stage}", marks=pytest.mark.deepspeed) for stage in (1, 2, 3)),
    ],
)
def test_two_processes_take_the_same_steps_as_one(strategy, single, tmp_path):
    told = by_two(strategy, tmp_path)
    assert len(told["losses"]) == STEPS
    assert told["losses"] == pytest.approx(single["losses"], rel=0, abs=LOSS_BY_STRATEGY)
    # A wrong factor in the loss would not show in the losses: AdamW takes the direction alone.
    assert told["norms"] == pytest.approx(single["norms"], rel=LOSS_BY_STRATEGY)
    assert told["full_losses"] == pytest.approx(single["full_losses"], rel=0, abs=LOSS_BY_STRATEGY)
    assert told["moved"] > 0.1  # otherwise nothing was compared
    # A checkpoint in the middle, told by parameter: going on from it is the same, to the bit.
    assert told["resumed"] == told["losses"]
    assert told["same_weights"]
    assert told["export_gap"] < LOGP_OF_EXPORT
    assert told["full_export_gap"] < LOGP_OF_EXPORT


def test_one_process_resumes_to_the_bit_and_exports_what_it_trained(single):
    assert single["resumed"] == single["losses"]
    assert single["same_weights"]
    assert single["export_gap"] < LOGP_OF_EXPORT


def test_a_process_on_its_own_is_rank_0_of_one():
    assert (ranks.number(), ranks.count(), ranks.leads()) == (0, 1, True)
    assert ranks.gathered("a") == ["a"]
    assert ranks.dealt([3, 1, 2]) == [3, 1, 2]
    assert ranks.share(7) == 7


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a GPU")
def test_a_gpu_that_is_not_there_is_refused():
    with pytest.raises(RecipeError, match=r"trainer\.accelerator: this machine has no GPU"):
        strategies.require(Trainer(accelerator="gpu"))
    with pytest.raises(RecipeError, match="'fsdp' needs GPUs"):
        strategies.require(Trainer(strategy="fsdp", devices=2))


@pytest.mark.gpu
def test_more_gpus_than_there_are_are_refused():
    with pytest.raises(RecipeError, match=r"trainer\.devices: 99 GPUs are asked for"):
        strategies.require(Trainer(devices=99))


@pytest.mark.skipif(find_spec("deepspeed") is not None, reason="DeepSpeed is installed")
def test_deepspeed_that_is_missing_is_told_with_the_command_that_installs_it():
    with pytest.raises(MissingExtra, match=r"pip install 'agentrecipes\[deepspeed\]'") as told:
        strategies.require(Trainer(strategy="deepspeed_2"))
    assert told.value.exit_code == 3
