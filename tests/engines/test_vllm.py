"""vLLM in process: the draws of native, the log-probabilities of the trainer."""

import asyncio
import copy
from dataclasses import replace

import pytest
import torch
from ragged import MODEL, TOKENIZER, generate, next_turn, plain_logp, requests, start
from vllm_cases import GAP, gap, moved

from agentrecipes.engines.protocol import Sample
from agentrecipes.engines.vllm import Vllm
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.errors import EngineError

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.skipif(setup.installed() is None, reason="vLLM is not installed"),
    pytest.mark.filterwarnings("ignore"),  # vLLM's own
    pytest.mark.timeout(900),
]


@pytest.fixture(scope="module")
def shared():
    made = Vllm().start(MODEL, TOKENIZER)
    yield made
    made.close()


@pytest.fixture
def engine(shared):
    shared.load(MODEL.state_dict().items(), version=1)
    return shared


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 1.0), (1.3, 0.8), (0.0, 1.0)])
def test_it_draws_what_native_draws_over_ragged_turns(engine, temperature, top_p):
    turns = requests(temperature=temperature, top_p=top_p)
    native = start()
    for _ in range(3):
        samples, expected = generate(engine, turns), generate(native, turns)
        assert [(s.ids, s.finish) for s in samples] == [(s.ids, s.finish) for s in expected]
        assert gap(turns, samples) < GAP
        turns = next_turn(turns, samples)


def test_a_draw_does_not_depend_on_its_neighbours(engine):
    turns = requests()
    together = generate(engine, turns)
    assert [generate(engine, [turn])[0].ids for turn in turns] == [s.ids for s in together]


def test_a_turn_ends_at_its_first_stop_string_as_with_native(engine):
    stop = (" kalon", "don")  # names and ends of names
    turns = requests(40, stop=stop, max_tokens=60)
    samples, expected = generate(engine, turns), generate(start(), turns)
    assert [(s.ids, s.finish) for s in samples] == [(s.ids, s.finish) for s in expected]
    assert {sample.finish for sample in samples} >= {"stop", "length"}


def test_a_turn_that_spans_two_versions_says_which_token_is_whose(engine):
    other = moved(MODEL, 1)
    turns = [
        replace(turn, max_tokens=1500, stop=(), temperature=0.6, key=("span", n))
        for n, turn in enumerate(requests(6))
    ]

    async def updated_meanwhile() -> list[Sample]:
        running = asyncio.create_task(engine.generate(turns))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(engine.load, list(other.state_dict().items()), 2)
        return await running

    samples = asyncio.run(updated_meanwhile())
    spanning = [pair for pair in zip(turns, samples, strict=True) if pair[1].policy_versions]
    assert spanning
    for request, sample in spanning:
        before = sample.policy_versions.count(1)
        assert sample.policy_versions == (1,) * before + (2,) * (len(sample.ids) - before)
        assert sample.policy_version == 1
        found = torch.tensor(sample.logp)
        old, new = plain_logp(request, sample), plain_logp(request, sample, other)
        assert float((found - old)[:before].abs().max()) < GAP
        assert float((found - new)[before:].abs().max()) < GAP  # keys of the old ones forgotten


@pytest.mark.parametrize("fault", ["name", "shape", "missing"])
def test_weights_of_another_model_are_refused_and_the_old_ones_stay(engine, fault):
    weights = dict(moved(MODEL, 2).state_dict())
    head = weights.pop("lm_head.weight")
    if fault != "missing":
        weights |= {"lm_heat.weight": head} if fault == "name" else {"lm_head.weight": head[:-1]}
    with pytest.raises(EngineError, match="lm_hea"):
        engine.load(weights.items(), version=9)
    turns = requests(4)
    samples = generate(engine, turns)
    assert gap(turns, samples) < GAP
    assert samples[0].policy_version == 1


def test_it_is_built_anew_after_an_update_that_failed(engine):
    engine._do(lambda: setup.shut_down(engine._engine))
    engine.load(MODEL.state_dict().items(), version=5)
    turns = requests(4)
    samples = generate(engine, turns)
    assert gap(turns, samples) < GAP
    assert samples[0].policy_version == 5


def test_an_adapter_arrives_merged(engine):
    from peft import LoraConfig, get_peft_model

    from agentrecipes.training.export import weights
    from agentrecipes.training.module import PolicyModule

    adapted = get_peft_model(copy.deepcopy(MODEL), LoraConfig(r=2, target_modules=["q_proj"]))
    with torch.no_grad():
        for name, parameter in adapted.named_parameters():
            if "lora_B" in name:
                parameter.normal_(0.0, 0.5)
    engine.load(weights(PolicyModule(adapted, None)), version=3)
    turns = requests()
    samples = generate(engine, turns)
    assert gap(turns, samples, adapted.merge_and_unload()) < GAP


def test_a_cancelled_call_leaves_the_engine_as_it_was(engine):
    async def cancelled() -> None:
        running = asyncio.create_task(engine.generate([replace(requests()[0], max_tokens=1500)]))
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    turns = requests(3)
    assert gap(turns, generate(engine, turns)) < GAP


def test_calls_may_overlap(engine):
    turns = requests()

    async def two() -> list[list[Sample]]:
        return await asyncio.gather(engine.generate(turns[:5]), engine.generate(turns[5:]))

    first, second = asyncio.run(two())
    assert [s.ids for s in first + second] == [s.ids for s in generate(engine, turns)]


def test_a_turn_may_join_while_others_are_sampled(engine):
    turns = requests()

    async def joined() -> list[Sample]:
        first = engine.submit(turns[:5])
        await asyncio.sleep(0.05)
        return [await each for each in [*first, *engine.submit(turns[5:])]]

    assert [s.ids for s in asyncio.run(joined())] == [s.ids for s in generate(engine, turns)]


def test_a_turn_that_does_not_fit_is_refused(engine):
    with pytest.raises(EngineError, match="2048"):
        generate(engine, [replace(requests()[0], max_tokens=2048)])
