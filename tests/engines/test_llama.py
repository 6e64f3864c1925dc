"""The forward pass made for Llamas: the same logits as transformers' own, rounding apart."""

import copy

import pytest
import torch
from ragged import LOGP, MODEL, generate, requests, start
from transformers import LlamaConfig, LlamaForCausalLM, Qwen2Config, Qwen2ForCausalLM

from agentrecipes.engines.cache import Rows
from agentrecipes.engines.forward import Network
from agentrecipes.engines.llama import is_plain_llama
from tolerances import EXACT, FLOAT32

PROMPTS = [(5, 6, 7, 8), (9, 10), (11,)]
SMALL = {"vocab_size": 40, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
VARIANTS = {
    "plain": {"num_attention_heads": 2},
    "shared keys": {"num_attention_heads": 4, "num_key_value_heads": 2},
    "biases": {"num_attention_heads": 2, "attention_bias": True, "mlp_bias": True},
    "another activation": {"num_attention_heads": 2, "hidden_act": "gelu"},
    "wide heads": {"num_attention_heads": 2, "head_dim": 32},
    "scaled rotation": {
        "num_attention_heads": 2,
        "rope_parameters": {"rope_type": "linear", "rope_theta": 1000.0, "factor": 4.0},
    },
}


def llama(**settings: object):
    torch.manual_seed(0)
    model = LlamaForCausalLM(LlamaConfig(**{**SMALL, "initializer_range": 0.3, **settings}))
    for name, tensor in model.named_parameters():  # norms of 1 and biases of 0 would hide a mistake
        if tensor.dim() == 1:
            torch.nn.init.normal_(tensor, 1.0 if "norm" in name else 0.0, 0.3)
    return model.eval()


def logits(network):
    """(steps, rows, V) after ragged prompts and three more tokens, of which one row takes two."""
    rows = Rows(network.layers, len(PROMPTS), 16, dtype=torch.float32)
    with torch.inference_mode():
        network.prefill(rows, PROMPTS, starts=[0, 0, 0])
        told = []
        for step, live in enumerate((3, 3, 2)):
            rows.narrow(live)
            rows.valid[:live, rows.used] = True
            positions = torch.tensor([len(ids) + step for ids in PROMPTS[:live]])
            told.append(network.step(rows, torch.tensor([3, 1, 2])[:live], positions=positions))
    return told


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_a_step_gives_what_transformers_gives(settings):
    own, theirs = both(llama(**settings))
    for mine, expected in zip(logits(own), logits(theirs), strict=True):
        assert mine.std() > 0.1
        torch.testing.assert_close(mine / mine.std(), expected / mine.std(), **FLOAT32)


@pytest.mark.parametrize("settings", VARIANTS.values(), ids=VARIANTS)
def test_in_bfloat16_a_step_is_as_near_to_exact_numbers_as_transformers_is(settings):
    rounded = llama(**settings).to(torch.bfloat16)
    exact = torch.stack([x[:2] for x in logits(Network(copy.deepcopy(rounded).float()))])
    own, theirs = (torch.stack([x[:2] for x in logits(one)]) for one in both(rounded))
    assert 0.0 < (own - exact).norm() <= 1.3 * (theirs - exact).norm()


def both(model):
    """Networks on `model` that take the way of this package, and that of transformers."""
    own, theirs = Network(model), Network(model)
    assert own.shares
    theirs._llama = None
    return own, theirs


def test_new_weights_take_effect_at_once():
    model = llama(num_attention_heads=2)
    network = Network(model)
    before = logits(network)
    with torch.no_grad():
        model.lm_head.weight.mul_(2.0)
    for old, new in zip(before, logits(network), strict=True):
        torch.testing.assert_close(new, old * 2.0, **EXACT)


def test_a_whole_call_draws_the_same_either_way():
    one, other = start(), start()
    other._network._llama = None
    assert one._network.shares
    first, second = generate(one, requests()), generate(other, requests())
    for mine, expected in zip(first, second, strict=True):
        assert mine.ids == expected.ids
        torch.testing.assert_close(torch.tensor(mine.logp), torch.tensor(expected.logp), **LOGP)


def adapted():
    from peft import LoraConfig, get_peft_model

    config = LoraConfig(target_modules=["q_proj"])
    return get_peft_model(copy.deepcopy(MODEL), config)


def changed():
    model = llama(num_attention_heads=2)
    model.model.layers[0].mlp.up_proj = type("Quantised", (torch.nn.Linear,), {})(32, 48)
    return model


OTHERS = {
    "another architecture": lambda: Qwen2ForCausalLM(Qwen2Config(**SMALL, num_attention_heads=2)),
    "eager attention": lambda: llama(num_attention_heads=2, attn_implementation="eager"),
    "an adapter": adapted,
    "a layer of another make": changed,
}


@pytest.mark.parametrize("make", OTHERS.values(), ids=OTHERS)
def test_anything_but_a_plain_llama_takes_the_models_own_forward(make):
    assert not is_plain_llama(make())
    assert is_plain_llama(MODEL)
