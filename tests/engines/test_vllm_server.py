"""A real vLLM server, once: draws, updates while it samples, servers of others, its death."""

import asyncio
import copy
from dataclasses import replace

import pytest
import torch
from ragged import MODEL, PART, TOKENIZER, generate, next_turn, plain_logp, requests, start
from vllm_cases import GAP, gap

from agentrecipes.engines.protocol import Sample
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.engines.vllm_server import VllmServer
from agentrecipes.errors import EngineError

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(setup.installed() is None, reason="vLLM is not installed"),
    pytest.mark.timeout(1200),
]


@pytest.fixture(scope="module")
def other():
    made = copy.deepcopy(MODEL)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.mul_(1.1)
    return made


def test_a_server_from_its_start_to_its_death(other):
    engine = VllmServer().start(MODEL, TOKENIZER)
    try:
        draws_what_native_draws(engine, other)
        spans_two_versions(engine, other)
        serves_who_else_asks_if_the_model_is_the_same(engine)
        [process] = engine._processes
        process.close()
        with pytest.raises(EngineError, match="does not answer"):
            generate(engine, requests(2))
        assert not process.alive
    finally:
        engine.close()


def draws_what_native_draws(engine, other):
    for version, model in enumerate((MODEL, other), start=1):
        engine.load(model.state_dict().items(), version)
        native, turns = start(copy.deepcopy(model)), requests(top_p=0.9, temperature=0.8)
        for _ in range(2):
            samples, expected = generate(engine, turns), generate(native, turns)
            assert [(s.ids, s.finish) for s in samples] == [(s.ids, s.finish) for s in expected]
            assert {sample.policy_version for sample in samples} == {version}
            assert gap(turns, samples, model) < GAP
            turns = next_turn(turns, samples)


def spans_two_versions(engine, other):
    turns = [
        replace(turn, max_tokens=1500, stop=(), temperature=0.6, key=("span", n))
        for n, turn in enumerate(requests(6))
    ]

    async def updated_meanwhile() -> list[Sample]:
        running = asyncio.create_task(engine.generate(turns))
        await asyncio.sleep(1.0)
        await asyncio.to_thread(engine.load, list(MODEL.state_dict().items()), 3)
        return await running

    samples = asyncio.run(updated_meanwhile())
    spanning = [pair for pair in zip(turns, samples, strict=True) if pair[1].policy_versions]
    assert spanning
    for request, sample in spanning:
        before = sample.policy_versions.count(2)
        found = torch.tensor(sample.logp)
        assert float((found - plain_logp(request, sample, other))[:before].abs().max()) < GAP
        assert float((found - plain_logp(request, sample))[before:].abs().max()) < GAP


def serves_who_else_asks_if_the_model_is_the_same(engine):
    [url] = engine._urls
    again = VllmServer(urls=(url,)).start(MODEL, TOKENIZER)
    again.load(MODEL.state_dict().items(), version=4)
    turns = requests(4)
    assert gap(turns, generate(again, turns), MODEL) < GAP
    again.close()
    deeper = PART.model_copy(update={"layers": 3}).build(1)
    with pytest.raises(EngineError, match=r"serves another model: num_hidden_layers 2 \(here 3\)"):
        VllmServer(urls=(url,)).start(deeper, TOKENIZER)
