"""The scripted engine says its texts, within the limits of the requests."""

import asyncio

import pytest

from agentrecipes.components import build
from agentrecipes.engines.protocol import Request
from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.errors import EngineError
from agentrecipes.models.words import word_tokenizer

TOKENIZER = word_tokenizer(["say", " yes", " !"])


def said(engine, *requests: Request):
    return asyncio.run(engine.generate(requests))


def request(turn=0, **fields: object):
    return Request((2,), ("t", 0, turn, 0), **{"max_tokens": 9, "stop": (" !",), **fields})


def test_texts_come_turn_by_turn_and_the_last_one_again():
    engine = build("engine", {"name": "scripted", "texts": ["say !", "yes"]}).start(None, TOKENIZER)
    engine.load([], version=3)
    first, second, third = said(engine, request(0), request(1), request(2))
    assert TOKENIZER.decode(first.ids) == "say !"
    assert (first.finish, first.policy_version) == ("stop", 3)
    assert TOKENIZER.decode(second.ids) == "yes<|end|>"
    assert second.finish == "eos"
    assert third == second


def test_a_text_is_cut_at_the_limit_and_has_logp_zero():
    [sample] = said(ScriptedEngine(TOKENIZER, lambda _: "say yes yes !"), request(max_tokens=2))
    assert TOKENIZER.decode(sample.ids) == "say yes"
    assert (sample.finish, sample.logp) == ("length", (0.0, 0.0))


def test_a_text_never_becomes_a_special_token():
    [sample] = said(ScriptedEngine(TOKENIZER, lambda _: "<|user|>"), request(max_tokens=99))
    assert 2 not in sample.ids


def test_a_request_for_nothing_is_refused():
    with pytest.raises(EngineError, match="max_tokens"):
        said(ScriptedEngine(TOKENIZER, lambda _: ""), request(max_tokens=0))
