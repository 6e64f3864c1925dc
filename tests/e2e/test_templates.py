"""The shell templates for several machines: what they start, and that the programs take it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from small import SMALL

from agentrecipes.engines.vllm_runtime import process, setup
from agentrecipes.engines.vllm_server import VllmServer
from agentrecipes.models.tiny import Tiny
from agentrecipes.recipe.load import load

ROOT = Path(__file__).parents[2]
TEMPLATES = ROOT / "templates"
RECIPE = "recipes/rag_r1.yaml"
PATIENCE_SECONDS = 280.0  # two processes import everything, perhaps on a busy machine
RECIPE_WORDS = (RECIPE, "rollout.tasks=16", "stages.reinforce.optimizer.name=adamw")


def started(tmp_path: Path, template: str, program: str, *words: str, **env: str) -> list[str]:
    """The words with which a template would start `program`: a program that writes them down."""
    stand_in = tmp_path / program
    stand_in.write_text('#!/usr/bin/env bash\nprintf "%s\\n" "$0" "$@"\n')
    stand_in.chmod(0o755)
    given = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", **env}
    done = subprocess.run(
        [TEMPLATES / template, *words], env=given, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()[1:]


def loads(words: list[str]) -> tuple[int, int]:
    """Nodes and devices of the run that `words` would start, as the recipe's reader takes them."""
    after = words[words.index("run") + 1 :]
    assert after[0] == RECIPE
    overrides = [word for word in after[1:] if "=" in word]
    trainer = load(ROOT / RECIPE, overrides).stages[-1].trainer
    return trainer.nodes, trainer.devices


def test_torchrun_starts_the_run_on_every_gpu_of_every_machine(tmp_path):
    words = started(
        tmp_path, "torchrun.sh", "torchrun", *RECIPE_WORDS, NODES="2", RANK="1", GPUS="4"
    )
    assert words[words.index("--node-rank") + 1] == "1"
    assert words[words.index("--nproc-per-node") + 1] == "4"
    assert words[words.index("--no-python") + 1 :][:2] == ["agentrecipes", "run"]
    assert loads(words) == (2, 4)


def test_slurm_starts_it_with_the_numbers_of_the_job(tmp_path):
    words = started(
        tmp_path,
        "slurm.sh",
        "srun",
        *RECIPE_WORDS,
        SLURM_JOB_ID="17",
        SLURM_JOB_NUM_NODES="2",
        SLURM_NTASKS_PER_NODE="8",
    )
    assert words[:2] == ["agentrecipes", "run"]
    assert words[words.index("--run-dir") + 1] == "runs/17"
    assert loads(words) == (2, 8)


@pytest.mark.parametrize(
    ("template", "program"), [("torchrun.sh", "torchrun"), ("slurm.sh", "srun")]
)
def test_a_run_to_go_on_with_is_named_in_place_of_a_recipe(tmp_path, template, program):
    words = started(tmp_path, template, program, RESUME="runs/17")
    assert words[words.index("agentrecipes") :] == ["agentrecipes", "run", "--resume", "runs/17"]


def test_torchrun_carries_a_run_out_on_two_machines_and_goes_on_with_it(tmp_path):
    port = free_port()

    def machine(rank: int, *words: object, **more: str) -> subprocess.Popen[str]:
        """One of two that are this one, with a process each."""
        env = {"NODES": "2", "RANK": str(rank), "GPUS": "1", "PORT": str(port), **more}
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        given = [TEMPLATES / "torchrun.sh", *words, "--json"]
        return subprocess.Popen(
            [str(word) for word in given],
            env={**os.environ, "PATH": path, "RUN_DIR": str(tmp_path / "run"), **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    words = [ROOT / RECIPE, *SMALL, "trainer.accelerator=cpu", "trainer.strategy=ddp"]
    words += ["stages.reinforce.iterations=1"]
    for given, env in ((words, {}), ([], {"RESUME": str(tmp_path / "run")})):
        both = [machine(rank, *given, **env) for rank in (0, 1)]
        try:
            said = [each.communicate(timeout=PATIENCE_SECONDS) for each in both]
        finally:
            for each in both:
                each.kill()
        assert [each.returncode for each in both] == [0, 0], said
        assert json.loads(said[0][0])["status"] == "finished"
        assert [stage["iterations"] for stage in json.loads(said[0][0])["stages"]] == [0, 1]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_of_ones_own_is_started_as_the_engine_starts_its_own(tmp_path):
    env = {"MODEL": "/m", "PORT": "8123", "GPUS": "2", "CONTEXT": "512", "DTYPE": "float32"}
    words = started(tmp_path, "serve.sh", "python", "--api-key", "k", **env)
    assert words[-2:] == ["--api-key", "k"]
    part, folder = Tiny(layers=1), tmp_path / "model"
    model = part.build(0)
    setup.write_folder(model, part.tokenizer(), folder)
    arguments = setup.arguments(VllmServer(context=512), model, folder)
    own = process.command(arguments, host="127.0.0.1", port=8123)[1:]
    for flag in (
        "-m",
        "--host",
        "--port",
        "--dtype",
        "--max-model-len",
        "--generation-config",
        "--logprobs-mode",
        "--logits-processors",
        "--worker-extension-cls",
    ):
        assert words[words.index(flag) + 1] == own[own.index(flag) + 1], flag
    assert ("--enable-scale-out" in words) == ("--enable-scale-out" in own)
    text = (TEMPLATES / "serve.sh").read_text(encoding="utf-8")
    for name in ("VLLM_SERVER_DEV_MODE=1", "VLLM_USE_V2_MODEL_RUNNER=0"):
        assert name in text
        assert name in process.shown(arguments, 8123)


def test_a_server_without_a_model_is_asked_for_one(tmp_path):
    with pytest.raises(subprocess.CalledProcessError) as caught:
        started(tmp_path, "serve.sh", "python")
    assert "the folder of the model" in caught.value.stderr
