"""The native engine: its numbers are the model's, and nobody's turn depends on its neighbours."""

import asyncio
import copy
from dataclasses import replace

import pytest
import torch
from ragged import (
    LOGP,
    MODEL,
    OBSERVATION,
    TOKENIZER,
    generate,
    next_turn,
    plain_logp,
    requests,
    start,
)

from agentrecipes.engines import decode
from agentrecipes.engines.forward import attended
from agentrecipes.engines.native import Native
from agentrecipes.errors import EngineError
from tolerances import FLOAT32


@pytest.fixture
def engine():
    made = start()
    yield made
    made.close()


@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_logp_equals_a_plain_forward_pass_over_ragged_turns(engine, temperature):
    turns = requests(temperature=temperature)
    for _ in range(4):
        samples = generate(engine, turns)
        for request, sample in zip(turns, samples, strict=True):
            expected = plain_logp(request, sample)
            torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)
        turns = next_turn(turns, samples)


def test_the_same_key_draws_the_same_in_other_company(engine):
    turns = requests()
    together = generate(engine, turns)
    alone = start()
    for request, sample in zip(turns, together, strict=True):
        [single] = generate(alone, [request])
        assert single.ids == sample.ids
        assert single.finish == sample.finish
        torch.testing.assert_close(torch.tensor(single.logp), torch.tensor(sample.logp), **LOGP)
    assert [s.ids for s in generate(start(), turns[::-1])[::-1]] == [s.ids for s in together]


def test_another_key_draws_something_else(engine):
    [one, other] = generate(engine, [replace(requests()[0], key=("test", k)) for k in (1, 2)])
    assert one.ids != other.ids


def test_a_groups_prompt_is_computed_once(engine):
    turns = [replace(requests()[8], key=("test", attempt)) for attempt in range(8)]
    generate(engine, turns)
    size = len(turns[0].ids)
    assert (engine.counts.prefilled, engine.counts.reused) == (size, 7 * size)


def test_a_later_turn_computes_only_what_is_new(engine):
    turns = requests()
    samples = generate(engine, turns)
    before = engine.counts.prefilled
    turns = next_turn(turns, samples)
    generate(engine, turns)
    # the last sampled token, which was never fed, and an observation of 1 to 7 tokens
    new = sum(1 + 1 + index % OBSERVATION for index in range(len(turns)))
    assert engine.counts.prefilled - before == new


def test_attempts_that_said_the_same_go_on_from_the_prompt_that_they_share(engine):
    turns = [replace(requests()[8], key=("test", n), temperature=0.0) for n in range(4)]
    other = [replace(requests()[8], key=("test", n)) for n in (4, 5)]
    for _ in range(3):
        samples = generate(engine, [*turns, *other])
        assert len({sample.ids for sample in samples[:4]}) == 1
        for request, sample in zip([*turns, *other], samples, strict=True):
            expected = plain_logp(request, sample)
            torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)
        # The same is said to all four, so that their next prompts are equal too.
        turns = [
            replace(each, ids=(*each.ids, *samples[0].ids, *TOKENIZER("so").input_ids))
            for each in turns
        ]
        other = next_turn(other, samples[4:])


def test_an_edited_context_is_computed_anew_and_gives_its_own_numbers(engine):
    turns = requests(4)
    samples = generate(engine, turns)
    edited = [replace(r, ids=(5, *r.ids[1:])) for r in next_turn(turns, samples)]
    before = engine.counts.prefilled
    for request, sample in zip(edited, generate(engine, edited), strict=True):
        expected = plain_logp(request, sample)
        torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)
    assert engine.counts.prefilled - before == sum(len(r.ids) for r in edited)


def test_a_context_that_goes_back_reuses_the_turns_that_it_keeps(engine):
    turns = requests(4)
    first = generate(engine, turns)
    later = next_turn(turns, first)
    generate(engine, later)
    # The second turn is taken back: opening, first turn, observation, and other tokens after them.
    back = [replace(request, ids=(*request.ids, 7, 5), key=(*request.key, 2)) for request in later]
    prefilled = engine.counts.prefilled
    for request, sample in zip(back, generate(engine, back), strict=True):
        torch.testing.assert_close(torch.tensor(sample.logp), plain_logp(request, sample), **LOGP)
    kept = sum(len(a.ids) + len(s.ids) - 1 for a, s in zip(turns, first, strict=True))
    assert engine.counts.prefilled - prefilled == sum(len(r.ids) for r in back) - kept


def test_new_prompts_can_stand_beside_later_turns(engine):
    turns = requests(6)
    mixed = next_turn(turns, generate(engine, turns))[:3] + requests(10)[8:]
    for request, sample in zip(mixed, generate(engine, mixed), strict=True):
        expected = plain_logp(request, sample)
        torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)


def test_a_row_may_wait_while_others_go_on(engine):
    turns = requests(6)
    second = next_turn(turns, generate(engine, turns))
    generate(engine, second[:3])
    before = engine.counts.prefilled
    generate(engine, second[3:])
    assert engine.counts.prefilled - before == sum(2 + index % OBSERVATION for index in (3, 4, 5))


@pytest.mark.parametrize("share", [0.01, 0.25, 2.0])
def test_when_finished_rows_leave_changes_nothing(share):
    plain, other = start(), start(compact_at=share)
    turns = requests(16)
    for _ in range(3):
        expected, samples = generate(plain, turns), generate(other, turns)
        assert [s.ids for s in samples] == [s.ids for s in expected]
        for one, two in zip(samples, expected, strict=True):
            torch.testing.assert_close(torch.tensor(one.logp), torch.tensor(two.logp), **LOGP)
        turns = next_turn(turns, samples)


def test_prompts_in_several_chunks_give_the_same(engine, monkeypatch):
    turns = requests()
    expected = generate(engine, turns)
    monkeypatch.setattr("agentrecipes.engines.forward.CHUNK_TOKENS", 14)  # 7 prompts: 2 columns
    for one, two in zip(generate(start(), turns), expected, strict=True):
        assert one.ids == two.ids
        torch.testing.assert_close(torch.tensor(one.logp), torch.tensor(two.logp), **LOGP)


def test_a_long_turn_outgrows_the_first_columns():
    engine = start(compact_at=2.0)
    [request] = requests(1, max_tokens=300, stop=(), temperature=3.0)
    for key in range(5):  # an end token is one of 690 draws: some of the five are long
        [sample] = generate(engine, [replace(request, key=("long", key))])
        expected = plain_logp(replace(request, temperature=3.0), sample)
        torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)
        if len(sample.ids) > decode.ROOM:
            return
    pytest.fail("no turn was long enough")


def test_the_limit_of_tokens_is_kept_by_every_row(engine):
    turns = [replace(r, stop=(), max_tokens=1 + i) for i, r in enumerate(requests())]
    for request, sample in zip(turns, generate(engine, turns), strict=True):
        assert len(sample.ids) == len(sample.logp) <= request.max_tokens
        if sample.finish == "length":
            assert len(sample.ids) == request.max_tokens
        else:
            assert sample.ids[-1] == TOKENIZER.eos_token_id


def test_a_turn_ends_at_its_first_stop_string_or_end_and_not_later(engine):
    stop = (" kalon", "don")  # names and ends of names
    samples = generate(engine, requests(40, stop=stop, max_tokens=60))
    assert {sample.finish for sample in samples} >= {"stop", "length"}
    for sample in samples:
        whole, before = TOKENIZER.decode(sample.ids), TOKENIZER.decode(sample.ids[:-1])
        assert any(one in whole for one in stop) == (sample.finish == "stop")
        assert not any(one in before for one in stop)
        assert TOKENIZER.eos_token_id not in sample.ids[:-1]


def test_greedy_takes_the_likeliest_and_reports_it_at_temperature_one(engine):
    turns = requests(temperature=0.0)
    for request, sample in zip(turns, generate(engine, turns), strict=True):
        ids = torch.tensor([[*request.ids, *sample.ids]])
        with torch.no_grad():
            logits = MODEL(ids).logits[0, len(request.ids) - 1 : -1]
        assert logits.argmax(-1).tolist() == list(sample.ids)
        expected = plain_logp(request, sample)
        torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)


def test_new_weights_are_used_and_old_keys_forgotten():
    engine, other = start(copy.deepcopy(MODEL)), copy.deepcopy(MODEL)
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.mul_(1.1)
    turns = requests()
    second = next_turn(turns, generate(engine, turns))
    engine.load(other.state_dict().items(), version=4)
    before = engine.counts.prefilled
    for request, sample in zip(second, generate(engine, second), strict=True):
        assert sample.policy_version == 4
        expected = plain_logp(request, sample, other)
        torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)
    assert engine.counts.prefilled - before == sum(len(r.ids) for r in second)


def test_its_own_weights_are_not_copied(engine):
    version = MODEL.lm_head.weight._version
    engine.load(MODEL.state_dict().items(), version=1)
    assert MODEL.lm_head.weight._version == version


@pytest.mark.parametrize(
    ("name", "tensor"), [("lm_heat.weight", torch.zeros(2)), ("lm_head.weight", torch.zeros(2))]
)
def test_weights_of_another_model_are_refused(engine, name, tensor):
    with pytest.raises(EngineError, match=name):
        engine.load([(name, tensor)], version=1)


def test_the_model_keeps_its_mode_and_its_gradients(engine):
    MODEL.train()
    generate(engine, requests(2))
    assert MODEL.training
    MODEL(torch.tensor([[2, 3]])).logits.sum().backward()
    assert MODEL.lm_head.weight.grad is not None
    MODEL.zero_grad()
    MODEL.train(False)


def test_eager_attention_gives_the_same_numbers():
    model = copy.deepcopy(MODEL)
    model.set_attn_implementation("eager")
    engine, turns = start(model), requests()
    for _ in range(2):
        samples = generate(engine, turns)
        for request, sample in zip(turns, samples, strict=True):
            expected = plain_logp(request, sample)
            torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)
        turns = next_turn(turns, samples)


def test_grouped_keys_tied_weights_and_an_adapter_are_no_obstacle():
    from peft import LoraConfig, get_peft_model
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(3)
    config = LlamaConfig(
        vocab_size=len(TOKENIZER), hidden_size=64, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True,
    )  # fmt: skip
    model = get_peft_model(
        LlamaForCausalLM(config), LoraConfig(r=4, init_lora_weights=False, task_type="CAUSAL_LM")
    ).train(False)
    engine, turns = start(model), requests()
    samples = generate(engine, turns)
    for request, sample in zip(turns, samples, strict=True):
        expected = plain_logp(request, sample, model)
        torch.testing.assert_close(torch.tensor(sample.logp), expected, **LOGP)


def test_a_model_with_a_sliding_window_is_refused():
    model = copy.deepcopy(MODEL)
    model.config.layer_types = ["sliding_attention", "full_attention"]
    with pytest.raises(EngineError, match="sliding_attention"):
        Native().start(model, TOKENIZER)


def test_numbers_that_are_none_are_an_engine_error():
    model = copy.deepcopy(MODEL)
    with torch.no_grad():
        model.lm_head.weight[5] = float("nan")
    with pytest.raises(EngineError, match="not finite"):
        generate(start(model), requests(3))


@pytest.mark.parametrize(
    ("fields", "said"),
    [({"ids": ()}, "0 prompt tokens"), ({"max_tokens": 0}, "max_tokens 0"),
     ({"max_tokens": 5000}, "exceeds the model's 2048 positions")],
)  # fmt: skip
def test_an_impossible_request_is_refused(engine, fields, said):
    with pytest.raises(EngineError, match=said):
        generate(engine, requests(1, **fields))


def test_no_requests_are_no_work(engine):
    assert generate(engine, []) == []


def test_a_cancelled_call_ends_early_and_the_next_one_works(engine):
    turns = requests(4, max_tokens=1500, stop=(), temperature=5.0)

    async def give_up() -> None:
        async with asyncio.timeout(0.05):
            await engine.generate(turns)

    with pytest.raises(TimeoutError):
        asyncio.run(give_up())
    [sample] = generate(engine, requests(1))
    assert sample.ids
    assert engine.counts.steps < 100  # the cancelled call left no trace


def test_first_tokens_follow_the_models_distribution(engine):
    prompt = requests()[0]
    count = 4000
    samples = generate(engine, [replace(prompt, key=(k,), max_tokens=1) for k in range(count)])
    with torch.no_grad():
        expected = MODEL(torch.tensor([prompt.ids])).logits[0, -1].softmax(-1) * count
    seen = torch.bincount(torch.tensor([s.ids[0] for s in samples]), minlength=len(expected))
    often = expected >= 5
    seen = torch.cat([seen[often], seen[~often].sum()[None]])
    wanted = torch.cat([expected[often], expected[~often].sum()[None]])
    chi2 = ((seen - wanted) ** 2 / wanted).sum().item()
    freedom = len(wanted) - 1
    # Wilson and Hilferty: (chi2 / freedom)^(1/3) is nearly normal; 4 sigma, and the keys are fixed
    deviation = (2 / (9 * freedom)) ** 0.5
    assert abs((chi2 / freedom) ** (1 / 3) - (1 - deviation**2)) < 4 * deviation
    assert freedom >= 10


def test_float32_is_the_least_that_logp_has():
    model = copy.deepcopy(MODEL).to(torch.bfloat16)
    [sample] = generate(start(model), requests(1))
    logp = torch.tensor(sample.logp)
    assert not torch.equal(logp.bfloat16().float(), logp)
    torch.testing.assert_close(logp.double().float(), logp, **FLOAT32)


def test_every_column_attends_to_something_and_never_to_what_comes_later():
    # two rows of two cached columns (the first row has none) and two new ones, the first is padding
    valid = torch.tensor([[False, False, False, True], [True, True, True, True]])
    assert attended(valid, 2, 4).int().tolist() == [
        [[[0, 0, 1, 0], [0, 0, 0, 1]]],
        [[[1, 1, 1, 0], [1, 1, 1, 1]]],
    ]
