"""vLLM in process, an engine a test: updates to other weights, and what comes before the first."""

from dataclasses import replace

import pytest
import torch
from ragged import MODEL, TOKENIZER, generate, requests, start
from vllm_cases import GAP, gap, moved

from agentrecipes.engines.vllm import Vllm
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.errors import EngineError

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(setup.installed() is None, reason="vLLM is not installed"),
    pytest.mark.timeout(900),
]
UPDATES = 10


def tied():
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(TOKENIZER),
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        initializer_range=0.15,
        max_position_embeddings=256,
        tie_word_embeddings=True,
        eos_token_id=TOKENIZER.eos_token_id,
    )
    return LlamaForCausalLM(config).eval()


@pytest.mark.parametrize("make", [lambda: MODEL, tied], ids=["untied", "tied"])
def test_ten_updates_are_all_taken(make):
    model = make()
    engine, turns = Vllm().start(model, TOKENIZER), requests()
    try:
        for version in range(UPDATES):
            model = moved(model, version)
            engine.load(model.state_dict().items(), version)
            samples = generate(engine, turns)
            assert {sample.policy_version for sample in samples} == {version}
            assert gap(turns, samples, model) < GAP
            greedy = [replace(turn, temperature=0.0) for turn in turns]
            expected = generate(start(model), greedy)
            assert [s.ids for s in generate(engine, greedy)] == [s.ids for s in expected]
    finally:
        engine.close()


def test_without_weights_it_does_not_sample():
    engine = Vllm().start(MODEL, TOKENIZER)
    try:
        with pytest.raises(EngineError, match="no weights"):
            generate(engine, requests(1))
    finally:
        engine.close()


def test_it_starts_again_after_it_was_closed():
    import llvmlite.binding  # noqa: F401 - an object of it answers any name; vLLM looks at all

    for version in (1, 2):
        engine = Vllm().start(MODEL, TOKENIZER)
        try:
            engine.load(MODEL.state_dict().items(), version)
            assert gap(requests(2), generate(engine, requests(2))) < GAP
        finally:
            engine.close()
        with pytest.raises(EngineError, match="closed"):
            generate(engine, requests(1))


def test_a_second_one_in_the_same_process_is_refused():
    engine = Vllm().start(MODEL, TOKENIZER)
    try:
        with pytest.raises(EngineError, match="another"):
            Vllm().start(MODEL, TOKENIZER)
        engine.load(MODEL.state_dict().items(), version=1)
        assert gap(requests(2), generate(engine, requests(2))) < GAP
    finally:
        engine.close()
