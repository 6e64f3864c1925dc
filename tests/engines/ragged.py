"""A small model, its plain forward pass, and turns that are as ragged as they come."""

import asyncio
from dataclasses import replace

import torch

from agentrecipes.engines.native import Native
from agentrecipes.engines.protocol import Request
from agentrecipes.models.tiny import Tiny

PART = Tiny(layers=2, mlp=64, init=0.12)  # a large init: differences show
MODEL = PART.build(1)
TOKENIZER = PART.tokenizer()
STOP = ("</search>", "</answer>")
LOGP = {"rtol": 0.0, "atol": 1e-5}  # nats; float32 logits of another order of summation
OBSERVATION = 7  # the longest observation in tokens


def requests(count=12, **fields: object):
    """`count` first turns, prompts of 1 to 6 tokens, two of each."""
    made = []
    for index in range(count):
        size = 1 + (index // 2) % 6
        ids = tuple(range(300 + index // 2, 300 + index // 2 + size))
        made.append(Request(ids, ("test", index), max_tokens=20 + index % 5, stop=STOP))
    return [replace(request, **fields) for request in made]


def next_turn(turns, samples):
    """The requests after `samples`, with observations of 1 to OBSERVATION tokens."""
    made = []
    for index, (request, sample) in enumerate(zip(turns, samples, strict=True)):
        seen = tuple(range(400, 401 + index % OBSERVATION))
        ids = request.ids + sample.ids + seen
        made.append(replace(request, ids=ids, key=(*request.key, len(ids))))
    return made


def start(model=MODEL, **settings: object):
    engine = Native().start(model, TOKENIZER)
    for name, value in settings.items():
        setattr(engine, name, value)
    return engine


def generate(engine, turns):
    return asyncio.run(engine.generate(turns))


def plain_logp(request, sample, model=MODEL):
    """(T,) log-probabilities of the sample by one forward pass without cache, batch or mask."""
    ids = torch.tensor([[*request.ids, *sample.ids]])
    with torch.no_grad():
        logits = model(ids).logits[0, len(request.ids) - 1 : -1].float()
    logp = torch.log_softmax(logits / (request.temperature or 1.0), dim=-1)
    return logp.gather(1, torch.tensor(sample.ids)[:, None])[:, 0]
