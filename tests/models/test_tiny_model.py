"""The embedded model: its shape, its seed, and what a folder gives back."""

import pytest
import torch
from pydantic import ValidationError

from agentrecipes.components import build
from agentrecipes.errors import RecipeError
from agentrecipes.models.hf import HF
from agentrecipes.models.run import Run
from agentrecipes.models.tiny import Tiny
from agentrecipes.models.value_head import value_head

SMALL = Tiny(layers=1, mlp=32)


def test_the_default_has_two_heads_of_32_and_no_biases():
    model = Tiny().build(0)
    config = model.config
    assert (config.num_attention_heads, config.head_dim, config.num_hidden_layers) == (2, 32, 3)
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())
    assert model.lm_head.weight.data_ptr() != model.model.embed_tokens.weight.data_ptr()


def test_its_size_follows_from_its_widths():
    # embedding and head: V * 64 each; a layer: 4 of 64 * 64, 3 of 64 * 192, 2 norms; the last norm
    vocabulary = len(Tiny().tokenizer())
    expected = 2 * vocabulary * 64 + 3 * (4 * 64 * 64 + 3 * 64 * 192 + 2 * 64) + 64
    assert sum(p.numel() for p in Tiny().build(0).parameters()) == expected


def test_every_matrix_has_the_initial_deviation_and_norms_are_one():
    for name, parameter in Tiny().build(3).named_parameters():
        if parameter.dim() == 1:
            assert torch.equal(parameter, torch.ones_like(parameter)), name
        else:  # of at least 4096 draws: a deviation is off by 1.1 % at one sigma
            assert 0.075 < parameter.std().item() < 0.085, name


def test_the_seed_decides_the_weights_and_the_global_generator_does_not():
    torch.manual_seed(1)
    state = torch.get_rng_state()
    first = SMALL.build(5)
    assert torch.equal(torch.get_rng_state(), state)
    torch.manual_seed(2)
    second, other = SMALL.build(5), SMALL.build(6)
    assert torch.equal(first.lm_head.weight, second.lm_head.weight)
    assert not torch.equal(first.lm_head.weight, other.lm_head.weight)


def test_heads_that_do_not_fit_are_refused():
    with pytest.raises(ValidationError, match="cannot be shared by 3 heads"):
        Tiny(width=64, heads=3)


@pytest.fixture
def folder(tmp_path):
    model, tokenizer = SMALL.build(5), SMALL.tokenizer()
    model.save_pretrained(tmp_path / "made" / "model")
    tokenizer.save_pretrained(tmp_path / "made" / "model")
    return tmp_path / "made"


def test_another_runs_model_is_the_same_bit_for_bit(folder):
    loaded = Run(path=str(folder)).build(0)
    for (name, one), (_, other) in zip(
        SMALL.build(5).named_parameters(), loaded.named_parameters(), strict=True
    ):
        assert torch.equal(one, other), name
    assert Run(path=str(folder / "model")).tokenizer().decode([2, 300, 1]) == (
        SMALL.tokenizer().decode([2, 300, 1])
    )


def test_a_folder_among_the_models_comes_before_the_hub(folder, monkeypatch):
    monkeypatch.setenv("AGENTRECIPES_MODELS", str(folder))
    part = build("model", {"name": "hf", "path": "model"})
    assert torch.equal(part.build(0).lm_head.weight, SMALL.build(5).lm_head.weight)
    assert part.tokenizer().chat_template == SMALL.tokenizer().chat_template


def test_bf16_is_asked_for_and_given(folder):
    part = HF(path=str(folder / "model"), dtype="bf16", attention="eager")
    assert part.build(0).lm_head.weight.dtype == torch.bfloat16


def test_an_adapter_trains_alone_and_starts_as_nothing(folder):
    part = HF(path=str(folder / "model"), lora={"rank": 4, "targets": ["q_proj", "v_proj"]})
    model = part.build(3)
    [group] = part.parameter_groups(model)
    # rank 4, one layer, two matrices of 64 x 64, each with an A (4 x 64) and a B (64 x 4)
    assert sum(p.numel() for p in group["params"]) == 2 * 2 * 4 * 64
    ids = torch.tensor([[2, 300, 301]])
    with torch.no_grad():
        assert torch.equal(model(ids).logits, SMALL.build(5)(ids).logits)
    again = {name: p for name, p in part.build(3).named_parameters() if "lora_A" in name}
    assert all(torch.equal(dict(model.named_parameters())[name], p) for name, p in again.items())


def test_a_run_with_an_adapter_gives_base_and_adapter(folder, tmp_path):
    made = HF(path=str(folder / "model"), lora={"rank": 4, "targets": ["q_proj"]}).build(3)
    with torch.no_grad():
        for name, parameter in made.named_parameters():
            if "lora_B" in name:
                parameter.fill_(0.1)
    made.save_pretrained(tmp_path / "next" / "model")
    loaded = Run(path=str(tmp_path / "next")).build(0)
    ids = torch.tensor([[2, 300, 301]])
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, made(ids).logits)
    assert any(p.requires_grad for p in loaded.parameters())


def test_pickled_weights_are_never_opened(folder):
    (folder / "model" / "model.safetensors").rename(folder / "model" / "pytorch_model.bin")
    with pytest.raises(RecipeError, match=r"no \*\.safetensors"):
        HF(path=str(folder / "model")).build(0)


@pytest.mark.parametrize("name", ["hf", "run"])
def test_a_folder_that_is_not_there_is_a_problem(name):
    [problem] = build("model", {"name": name, "path": "./nowhere"}).rules(None)
    assert (problem.code, problem.path) == ("missing_file", "path")


def test_the_value_head_says_zero_at_first():
    config = SMALL.build(0).config
    assert torch.equal(value_head(config)(torch.ones(3, 64)), torch.zeros(3, 1))


def test_further_words_are_one_token_each_and_come_after_the_others():
    plain, wide = Tiny().tokenizer(), Tiny(words=("<plan>", "</plan>")).tokenizer()
    for text in ("<plan>", " <plan>", "\n</plan>"):
        assert len(plain.encode(text)) > 1
        assert len(wide.encode(text)) == 1
    assert len(wide) == len(plain) + 6  # two words, alone, after a blank and after a newline
    known = " author"
    assert wide.encode(known) == plain.encode(known)
    assert Tiny(words=("<plan>",)).build(3).get_input_embeddings().num_embeddings == len(plain) + 3
