"""Whole runs on other models: another run's, one from a folder, one with an adapter."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from knobs import algorithm, curve, other_model, ran, weights, with_model
from safetensors.torch import load_file
from small import RECIPE, experiment
from test_resume import StopAfter, rows
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from agentrecipes.experiment import run
from agentrecipes.models.tiny import Tiny
from agentrecipes.recipe.load import load
from agentrecipes.training.signals import StopFlag


def test_a_run_goes_on_from_the_model_of_another(tmp_path):
    ran(tmp_path / "first")
    with_model(tmp_path / "second", f"{{name: run, path: {tmp_path / 'first'}}}")
    places = {"first": ("reinforce", 2), "second": ("imitate", 0)}
    ended, began = (
        {
            (row["task"], row["turn"]): row["action_ids"]
            for row in rows(tmp_path / name, "turns")
            if (row["stage"], row["iteration"], row["split"], row["mode"]) == (*at, "dev", "greedy")
        }
        for name, at in places.items()
    )
    assert ended
    assert began == ended
    first, second = (weights(tmp_path / name) for name in places)
    assert any(not torch.equal(second[name], tensor) for name, tensor in first.items())


@pytest.fixture
def models(tmp_path, monkeypatch) -> Path:
    """A folder of models with a random Llama whose head is its embedding."""
    tokenizer = Tiny().tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.2,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    torch.manual_seed(0)
    folder = tmp_path / "models" / "little"
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    monkeypatch.setenv("AGENTRECIPES_MODELS", str(folder.parent))
    return folder.parent


def test_an_adapter_is_trained_beside_weights_that_stay(tmp_path, models):
    rate = "stages.reinforce.optimizer.learning_rate=0.01"
    model = "{name: hf, path: little, lora: {rank: 2, alpha: 4}}"
    kl = algorithm("name: grpo, kl: {place: loss, coefficient: 0.1}")
    with_model(tmp_path / "run", model, rate, kl)
    folder = tmp_path / "run" / "model"
    adapter = load_file(folder / "adapter_model.safetensors")
    assert adapter
    assert all(".lora_" in name for name in adapter)
    assert max(float(t.abs().max()) for n, t in adapter.items() if "lora_B" in n) > 0.0
    assert not (tmp_path / "run" / "checkpoints" / "reference-1.pt").exists()
    measured = curve(tmp_path / "run", "loss/kl")
    # The reference is the model without its adapter, and imitation has moved the adapter already.
    assert all(nats > 1e-6 for nats in measured)
    assert all(gap < 1e-4 for gap in curve(tmp_path / "run", "sync/logp_gap_max"))
    plain = AutoModelForCausalLM.from_pretrained(models / "little")
    adapted = AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor([[5, 6, 7, 8]])
    with torch.no_grad():
        assert float((plain(ids).logits - adapted(ids).logits).abs().max()) > 1e-4
    with_model(tmp_path / "next", f"{{name: run, path: {tmp_path / 'run'}}}", rate)
    gone_on = load_file(tmp_path / "next" / "model" / "adapter_model.safetensors")
    assert gone_on.keys() == adapter.keys()
    assert any(not torch.equal(gone_on[name], tensor) for name, tensor in adapter.items())
    # A run that was stopped on its way ends with the same adapter.
    recipe, stop = load(RECIPE, other_model(model, rate, kl)), StopFlag()
    progress = StopAfter(stop, "reinforce", 1)
    assert run(experiment(recipe, tmp_path / "cut"), progress, stop=stop)["status"] == "interrupted"
    assert run(experiment(recipe, tmp_path / "cut"), resume=True)["status"] == "finished"
    resumed = load_file(tmp_path / "cut" / "model" / "adapter_model.safetensors")
    assert all(torch.equal(resumed[name], tensor) for name, tensor in adapter.items())


def test_a_model_whose_head_is_its_embedding_stays_tied(tmp_path, models):
    with_model(tmp_path / "run", "{name: hf, path: little}")
    assert all(gap < 1e-4 for gap in curve(tmp_path / "run", "sync/logp_gap_max"))
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "run" / "model")
    assert found.lm_head.weight.data_ptr() == found.model.embed_tokens.weight.data_ptr()
    start = AutoModelForCausalLM.from_pretrained(models / "little")
    assert not torch.equal(start.lm_head.weight, found.lm_head.weight)
