"""The plan's arithmetic, by hand; what it reads, and what it suggests."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from agentrecipes.analysis.plan import machine
from agentrecipes.analysis.plan.machine import PEAK, REACHED, Device, at_hand, speed_of
from agentrecipes.analysis.plan.memory import LIBRARIES, Sizes, cached_token, kept_numbers, memory
from agentrecipes.analysis.plan.plan import plan, shortage
from agentrecipes.analysis.plan.shape import Shape, shape_of
from agentrecipes.analysis.plan.speed import Clock, seconds, tokens
from agentrecipes.components import build
from agentrecipes.errors import RecipeError
from agentrecipes.recipe.load import Recipe, load

RECIPE = """\
name: planned
model: {name: tiny, width: 96, layers: 2, heads: 3, mlp: 160}
environment: {name: search, dataset: {name: world, train: 20, dev: 10, test: 10}, max_turns: 1}
rewards: [exact_match]
algorithm: grpo
rollout: {tasks: 4, group_size: 8, tokens: 100, tokens_per_turn: 50}
trainer: {accelerator: cpu, tokens_per_batch: 800}
evaluation: {tasks: 3}
iterations: 2
"""
CONFIG = {
    "hidden_size": 576,
    "num_hidden_layers": 30,
    "intermediate_size": 1536,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49152,
    "tie_word_embeddings": True,
}
SMOLLM2 = 134_515_008  # parameters of SmolLM2-135M, as its model card and its files say
# Embeddings and head 2 · 10 · 96, each of two layers 4 · 96² + 3 · 96 · 160, five norms of 96.
TOY = Shape("by hand", vocabulary=10, width=96, layers=2, mlp=160, heads=3, kv_heads=3, head=32,
            tied=False)  # fmt: skip
TOY_PARAMETERS = 2 * 10 * 96 + 2 * (4 * 96 * 96 + 3 * 96 * 160) + 5 * 96


@pytest.fixture
def recipe(tmp_path):
    """The recipe with overrides."""
    path = tmp_path / "planned.yaml"
    path.write_text(RECIPE)
    return lambda *overrides: load(path, list(overrides))


def needed(recipe, *overrides: str, device: str = "cpu"):
    """The toy's memory in the recipe's stage."""
    made = recipe(*overrides)
    stage = made.stage(0, 0)
    return memory(stage, TOY, Sizes.of(stage, TOY, made.fields.model), device=device)


def folder_with(tmp_path: Path, config: dict) -> Path:
    folder = tmp_path / "models" / "org" / "name"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_the_number_of_parameters_follows_from_the_shape():
    assert TOY.parameters == TOY_PARAMETERS
    assert TOY.adapter(8, "all-linear") == 2 * 8 * (4 * (96 + 96) + 3 * (96 + 160))
    assert TOY.adapter(8, ("q_proj", "down_proj")) == 2 * 8 * (96 + 96 + 160 + 96)


def test_a_tiny_model_is_planned_as_it_is_built():
    part = build("model", {"name": "tiny", "width": 96, "layers": 2, "heads": 3, "mlp": 160})
    built = part.build(0)
    assert shape_of(part).parameters == sum(own.numel() for own in built.parameters())


def test_a_configuration_is_enough_for_a_model_of_the_hub(tmp_path, monkeypatch):
    folder_with(tmp_path, CONFIG)
    monkeypatch.setenv("AGENTRECIPES_MODELS", str(tmp_path / "models"))
    shape = shape_of(build("model", {"name": "hf", "path": "org/name"}))
    assert shape.parameters == SMOLLM2
    assert (shape.head, shape.keys) == (64, 192)


def test_the_headers_of_the_weights_say_it_exactly(tmp_path, monkeypatch):
    header = json.dumps({"a": {"shape": [3, 5]}, "b": {"shape": [7]}, "__metadata__": {}}).encode()
    data = len(header).to_bytes(8, "little") + header
    (folder_with(tmp_path, CONFIG) / "model.safetensors").write_bytes(data)
    monkeypatch.setenv("AGENTRECIPES_MODELS", str(tmp_path / "models"))
    assert shape_of(build("model", {"name": "hf", "path": "org/name"})).parameters == 3 * 5 + 7


def test_the_cache_of_the_hub_is_looked_into(tmp_path, monkeypatch):
    cache = tmp_path / "hub" / "models--org--name"
    (cache / "refs").mkdir(parents=True)
    (cache / "refs" / "main").write_text("abc")
    (cache / "snapshots" / "abc").mkdir(parents=True)
    (cache / "snapshots" / "abc" / "config.json").write_text(json.dumps(CONFIG))
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert shape_of(build("model", {"name": "hf", "path": "org/name"})).layers == 30


@pytest.mark.parametrize(
    ("config", "said"),
    [(None, "is not at hand"), ({"hidden_size": 4}, "says no num_attention_heads")],
)
def test_a_model_whose_size_is_not_known_is_said_with_what_to_do(tmp_path, config, said, recipe):
    part = {"name": "hf", "path": "org/elsewhere" if config is None else str(tmp_path / "m")}
    if config is not None:
        (tmp_path / "m").mkdir()
        (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with pytest.raises(RecipeError, match=said):
        shape_of(build("model", part))


def test_what_is_held_all_the_time_is_counted_by_the_parameter(recipe):
    size = 4 * TOY_PARAMETERS
    assert needed(recipe).always == {
        "libraries": LIBRARIES["cpu"],
        "weights": size,
        "gradients": size,
        "optimizer": 2 * size,  # AdamW's two moments
    }
    with_value = needed(recipe, "algorithm.name=ppo").always
    assert with_value["value head"] == 4 * 4 * 97  # weights, gradients, two moments
    kl = "algorithm.kl={place: loss, coefficient: 0.1}"
    assert needed(recipe, kl).always["reference"] == size


@pytest.mark.parametrize(
    ("strategy", "cut"),
    [
        ("ddp", {}),
        ("deepspeed_1", {"optimizer"}),
        ("deepspeed_2", {"optimizer", "gradients"}),
        ("deepspeed_3", {"optimizer", "gradients", "weights"}),
    ],
)
def test_zero_cuts_more_into_pieces_stage_by_stage(recipe, strategy, cut):
    plain = needed(recipe).always
    found = needed(recipe, f"trainer.strategy={strategy}", "trainer.devices=4").always
    for name in ("weights", "gradients", "optimizer"):
        assert found[name] == plain[name] // (4 if name in cut else 1), name
    assert ("gradients in exchange" in found) == (strategy in ("ddp", "deepspeed_1"))


def test_sampling_holds_keys_and_values_of_every_row(recipe):
    # Two layers' keys and values, 96 wide, in float32; 32 rows of 100 tokens; one turn.
    assert cached_token(TOY, 4) == 2 * 2 * 96 * 4
    sampling = needed(recipe).sampling
    assert sampling["keys and values"] == 32 * 100 * 2 * 2 * 96 * 4
    fewer = needed(recipe, "rollout.concurrency=8").sampling
    assert fewer["keys and values"] * 4 == sampling["keys and values"]
    turns = needed(recipe, "environment.max_turns=3").sampling
    assert turns["keys and values"] == 2 * sampling["keys and values"]  # the turn before's too


def test_vllm_has_weights_and_a_cache_of_its_own_unless_it_sleeps(recipe):
    engine = "rollout.engine={name: vllm, dtype: bf16, sequences: 8}"
    weights, cache = 2 * TOY_PARAMETERS, 8 * 100 * 2 * 2 * 96 * 2
    asleep = needed(recipe, engine, device="gpu")
    assert "engine's weights" not in asleep.always
    assert asleep.sampling["engine's weights"] == weights
    assert asleep.sampling["engine's keys and values"] == cache
    on_cpu = needed(recipe, engine)  # nothing sleeps there
    assert on_cpu.always["engine's weights"] == weights
    assert on_cpu.always["engine's keys and values"] == 1 << 28
    elsewhere = needed(recipe, "rollout.engine={name: vllm_server, urls: ['http://127.0.0.1:1']}")
    assert "engine's weights" not in {**elsewhere.always, **elsewhere.sampling}


def test_the_larger_of_sampling_and_updating_makes_the_peak(recipe):
    one = needed(recipe)
    assert one.peak == "update"
    assert one.total == sum(one.always.values()) + sum(one.update.values())
    other = needed(recipe, "rollout.group_size=500", "rollout.concurrency=2000")
    assert other.peak == "sampling"
    assert other.total == sum(other.always.values()) + sum(other.sampling.values())


def test_activations_grow_with_the_micro_batch_and_stop_at_the_iteration(recipe):
    at = {
        size: needed(recipe, f"trainer.tokens_per_batch={size}").update["activations"]
        for size in (400, 800, 3200, 6400)
    }
    assert at[800] == 2 * at[400]
    assert at[6400] == at[3200]  # 4 tasks, 8 attempts and 100 tokens are all there is


def test_an_iteration_has_at_most_so_many_tokens_and_takes_its_operations(recipe):
    made = recipe("algorithm.name=ppo")
    stage = made.stage(0, 0)
    assert tokens(stage) == 4 * 8 * 100
    sizes = Sizes.of(stage, TOY, made.fields.model)
    slow, fast = (
        Clock(Device("cpu", "c", 1), machine.Speed(rate, 1e30, "by hand")) for rate in (1e6, 2e6)
    )
    fixed = Clock(Device("cpu", "c", 1), machine.Speed(1e30, 1e30, "by hand"))
    spent = [seconds(stage, TOY, sizes, clock=clock) for clock in (slow, fast, fixed)]
    assert (spent[0] - spent[2]) == pytest.approx(2 * (spent[1] - spent[2]), rel=1e-6)
    # One pass without gradients, one with: 2 + 6 operations a parameter and token, and 2 to sample.
    forward = 2 * TOY.computing + 2 * 2 * 96 * 100
    assert spent[0] - spent[2] == pytest.approx(
        3200 * (4 * forward + 2 * TOY.computing) / 1e6, rel=1e-6
    )


def test_a_gpu_is_known_by_its_name_and_its_speed_is_assumed(tmp_path, monkeypatch, recipe):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho 'NVIDIA H100 80GB HBM3, 81559'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin")
    device = at_hand(recipe("trainer.accelerator=auto").stages[0].trainer)
    assert device == Device("gpu", "NVIDIA H100 80GB HBM3", 81559 << 20)
    speed = speed_of(device)
    assert speed.rate == PEAK["H100"][0] * REACHED
    assert speed.basis.startswith("assumed")


def test_the_memory_of_a_cpu_is_shared_by_its_ranks(recipe):
    one = at_hand(recipe().stages[0].trainer)
    two = at_hand(recipe("trainer.strategy=ddp", "trainer.devices=2").stages[0].trainer)
    assert one.kind == "cpu"
    assert two.bytes < 0.7 * one.bytes
    assert speed_of(one).basis.startswith("measured")


def test_what_does_not_fit_is_told_with_the_smallest_change_that_does(tmp_path, recipe):
    path = tmp_path / "planned.yaml"

    def reload(changes) -> Recipe:
        return load(path, list(changes))

    free = plan(recipe(), reload, device_bytes=1 << 40)
    assert free["fits"]
    assert free["suggestions"] == []
    total = free["memory"]["total_bytes"]
    assert total == sum(term["bytes"] for term in free["memory"]["terms"])
    tight = plan(recipe(), reload, device_bytes=total - 1)
    assert not tight["fits"]
    first = tight["suggestions"][0].split(" ")[0]
    assert first == "trainer.tokens_per_batch=400"
    assert plan(reload([first]), reload, device_bytes=total - 1)["fits"]
    none = plan(recipe(), reload, device_bytes=1)
    assert none["suggestions"][0].startswith("no one change is enough")


def test_check_warns_where_there_is_less_than_it_takes(recipe):
    assert shortage(recipe()) is None
    problem = shortage(recipe("model.width=65536", "model.heads=2048", "model.mlp=262144"))
    assert problem is not None
    assert (problem.severity, problem.code, problem.path) == ("warning", "memory", "")
    assert "optimizer" in problem.message
    assert shortage(recipe("model={name: hf, path: org/elsewhere}")) is None


def test_a_plain_llama_keeps_fewer_numbers_than_its_own_modules_and_only_on_a_cpu(recipe):
    made = recipe()
    sizes = Sizes.of(made.stage(0, 0), TOY, made.fields.model)
    plain = replace(TOY, family="llama")
    modules = 6 * 96 + 3 * 96 + 2 * 96 + 4 * 160
    assert kept_numbers(plain, sizes, device="cpu") == 4 * 96 + 2 * 96 + 2 * 96 + 3 * 160
    assert kept_numbers(plain, sizes, device="gpu") == modules
    assert kept_numbers(TOY, sizes, device="cpu") == modules
