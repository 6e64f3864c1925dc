"""Four bits for the frozen weights, an adapter beside them in full precision (QLoRA)."""

from __future__ import annotations

import importlib.util

import pytest
import torch
from makers import llama, row
from small import RECIPE
from transformers import AutoModelForCausalLM

from agentrecipes.compile import RunPlace, compile_recipe
from agentrecipes.components import build
from agentrecipes.errors import MissingExtra
from agentrecipes.models.tiny import Tiny
from agentrecipes.recipe.load import check, load
from agentrecipes.training.export import export_model, save_model, weights
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.pack import strip
from tolerances import EXACT, FLOAT32

INSTALLED = importlib.util.find_spec("bitsandbytes") is not None
ROWS = [row([3, 1, 4, 1, 5], [2, 4], 0), row([9, 2, 6], [1, 2], 1)]


@pytest.mark.skipif(INSTALLED, reason="bitsandbytes is installed")
def test_without_bitsandbytes_the_command_that_installs_it_is_told(tmp_path):
    model = "model={name: hf, path: some/model, quantize: nf4, lora: {rank: 2}}"
    recipe = load(RECIPE, [model])  # it may be right: only a run needs the extra
    [warning] = [told for told in check(RECIPE, [model])[1] if told.path == "model.quantize"]
    assert warning.severity == "warning"
    assert "pip install 'agentrecipes[quant]'" in warning.suggestion
    with pytest.raises(MissingExtra, match=r"pip install 'agentrecipes\[quant\]'"):
        compile_recipe(recipe, RunPlace(tmp_path, tmp_path / "run"))
    llama(layers=1).save_pretrained(tmp_path)
    part = build("model", {"name": "hf", "path": str(tmp_path), "quantize": "nf4", "lora": {}})
    with pytest.raises(MissingExtra, match="quant"):
        part.build(0)


@pytest.fixture
def quantised(tmp_path):
    """A small base in full precision, and the same in four bits with an adapter that does things.

    Asking for bitsandbytes here skips a test where it is missing.
    """
    pytest.importorskip("bitsandbytes", reason="needs the extra quant")
    base = llama(layers=1)
    base.save_pretrained(tmp_path / "base")
    path = str(tmp_path / "base")
    spec = {"name": "hf", "path": path, "quantize": "nf4", "lora": {"rank": 2, "alpha": 8}}
    model = build("model", spec).build(5)
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(parameter, std=0.1)
    return base, model


def score(model):
    module = PolicyModule(model, None)
    return module, strip(ROWS, [each.action_mask for each in ROWS])


@pytest.mark.quant
def test_only_the_adapter_is_trained_and_the_reference_is_without_it(quantised):
    _, model = quantised
    module, packed = score(model)
    trained = [name for name, own in model.named_parameters() if own.requires_grad]
    assert trained
    assert all("lora_" in name for name in trained)
    base = model.get_base_model()
    assert base.model.layers[0].self_attn.q_proj.base_layer.weight.dtype == torch.uint8
    own = module(packed)
    own.logp.sum().backward()
    assert all(p.grad is not None for p in model.parameters() if p.requires_grad)
    with torch.no_grad():
        frozen = module(packed, reference=True).logp
        with model.disable_adapter():
            plain = module(packed).logp
    torch.testing.assert_close(frozen, plain, **EXACT)
    assert float((frozen - own.logp.detach()).abs().max()) > 1e-3


@pytest.mark.quant
@torch.no_grad()
def test_engines_get_what_four_bits_and_adapter_stand_for(quantised):
    base, model = quantised
    module, packed = score(model)
    whole = dict(weights(module))
    assert whole.keys() == base.state_dict().keys()
    twin = llama(layers=1)
    twin.load_state_dict(whole)
    found = PolicyModule(twin, None)(packed).logp
    torch.testing.assert_close(found, module(packed).logp, **FLOAT32)


@pytest.mark.quant
def test_an_export_merges_the_adapter_into_the_full_precision(quantised, tmp_path):
    base, model = quantised
    save_model(PolicyModule(model, None), Tiny().tokenizer(), tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "merged", merge=True)
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged")
    layer = model.get_base_model().model.layers[0].self_attn.q_proj
    wanted = base.model.layers[0].self_attn.q_proj.weight + layer.get_delta_weight("default")
    found = merged.model.layers[0].self_attn.q_proj.weight
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.detach(), wanted.detach(), **FLOAT32)
