"""Weights under Hugging Face's names, and a folder that transformers loads."""

from __future__ import annotations

import pytest
import torch
from makers import llama
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from agentrecipes.errors import RecipeError
from agentrecipes.models.tiny import Tiny
from agentrecipes.training.export import export_model, save_model, weights
from agentrecipes.training.module import PolicyModule
from tolerances import EXACT, FLOAT64


def tied() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=50,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=1,
        num_attention_heads=2,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config)


def adapted(dtype: torch.dtype = torch.float32):
    """A Llama and the same with an adapter that does something."""
    torch.manual_seed(1)
    config = LoraConfig(r=2, lora_alpha=8, target_modules="all-linear", task_type="CAUSAL_LM")
    model = get_peft_model(llama(layers=1).to(dtype), config)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return llama(layers=1).to(dtype), model


def test_a_models_weights_have_the_names_of_its_own_files():
    model = llama(layers=1)
    found = dict(weights(PolicyModule(model, None)))
    assert found.keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert found[name].data_ptr() == tensor.data_ptr()  # a view: nothing is copied
        assert not found[name].requires_grad


def test_the_head_is_among_them_also_where_it_is_the_embedding():
    found = dict(weights(PolicyModule(tied(), None)))
    assert torch.equal(found["lm_head.weight"], found["model.embed_tokens.weight"])


def test_an_adapter_comes_merged_and_under_the_plain_names():
    plain, model = (each.double() for each in adapted())
    module = PolicyModule(model, None)
    copies = {name: tensor.clone() for name, tensor in weights(module)}
    assert copies.keys() == plain.state_dict().keys()
    plain.load_state_dict(copies)
    ids = torch.tensor([[3, 1, 4, 1, 5]])
    with torch.no_grad():
        one, two = plain(ids).logits, model(ids).logits
        with model.disable_adapter():
            base = model(ids).logits
    torch.testing.assert_close(one, two, **FLOAT64)
    assert float((base - two).abs().max()) > 1e-2


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_frozen_weights_are_the_same_to_the_bit_after_many_iterations(dtype):
    plain, model = adapted(dtype)
    module = PolicyModule(model, None)
    for _ in range(5):
        for _name, _tensor in weights(module):
            pass
    next(iter(weights(module)))  # a reader that stops early
    for name, tensor in plain.state_dict().items():
        layer, dot, own = name.rpartition(".")
        state = model.get_base_model().state_dict()
        found = state.get(f"{layer}.base_layer{dot}{own}", state.get(name))
        torch.testing.assert_close(found, tensor, **EXACT, msg=name)


def test_a_saved_model_replaces_the_one_before_and_loads(tmp_path):
    tokenizer = Tiny().tokenizer()
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old.txt").touch()
    module = PolicyModule(Tiny(layers=1).build(3), None)
    save_model(module, tokenizer, folder)
    assert not (folder / "old.txt").exists()
    found = AutoModelForCausalLM.from_pretrained(folder)
    for name, tensor in module.model.state_dict().items():
        torch.testing.assert_close(found.state_dict()[name], tensor, **EXACT, msg=name)
    assert AutoTokenizer.from_pretrained(folder).get_vocab() == tokenizer.get_vocab()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_model_that_cannot_be_saved_leaves_the_one_before(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "old.txt").touch()
    (tmp_path / ".model.tmp").write_text("a file stands in the way")
    with pytest.raises(FileExistsError):
        save_model(PolicyModule(llama(layers=1), None), Tiny().tokenizer(), folder)
    assert (folder / "old.txt").exists()


def logits(model) -> torch.Tensor:
    with torch.no_grad():
        return model(torch.tensor([[3, 1, 4, 1, 5]])).logits


def kept_adapter(folder) -> torch.Tensor:
    """Write an adapter as a run keeps it, and its base beside it; the logits of both together."""
    plain, model = adapted()
    plain.save_pretrained(folder.parent / "base")
    model.peft_config["default"].base_model_name_or_path = str(folder.parent / "base")
    save_model(PolicyModule(model, None), Tiny().tokenizer(), folder)
    return logits(model)


def test_a_merged_export_gives_the_logits_of_weights_and_adapter(tmp_path):
    wanted = kept_adapter(tmp_path / "model")
    count = export_model(tmp_path / "model", tmp_path / "merged", merge=True)
    names = {file.name for file in (tmp_path / "merged").iterdir()}
    assert not any("adapter" in name for name in names)
    assert count > (tmp_path / "base" / "model.safetensors").stat().st_size
    found = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    # Merged weights are rounded once more; logits are around 1.
    torch.testing.assert_close(logits(found), wanted, rtol=1e-5, atol=1e-5)
    base = AutoModelForCausalLM.from_pretrained(tmp_path / "base")
    assert float((logits(base) - wanted).abs().max()) > 1e-2


@pytest.mark.parametrize("merge", [False, True])
def test_an_export_without_anything_to_merge_is_a_copy(tmp_path, merge):
    save_model(PolicyModule(llama(layers=1), None), Tiny().tokenizer(), tmp_path / "model")
    count = export_model(tmp_path / "model", tmp_path / "new" / "copy", merge=merge)
    kept, copied = (
        {file.name: file.read_bytes() for file in folder.iterdir()}
        for folder in (tmp_path / "model", tmp_path / "new" / "copy")
    )
    assert copied == kept
    assert count == sum(len(data) for data in kept.values())


def test_an_adapter_without_merging_stays_an_adapter(tmp_path):
    kept_adapter(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "copy", merge=False)
    assert (tmp_path / "copy" / "adapter_model.safetensors").is_file()


def test_an_adapter_whose_weights_are_gone_leaves_nothing(tmp_path):
    kept_adapter(tmp_path / "model")
    (tmp_path / "base").rename(tmp_path / "elsewhere")
    with pytest.raises(RecipeError, match="cannot be loaded"):
        export_model(tmp_path / "model", tmp_path / "merged", merge=True)
    assert not (tmp_path / "merged").exists()
