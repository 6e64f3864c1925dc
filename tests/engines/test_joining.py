"""Rows join a batch and leave it while it is sampled, and draw what they would draw alone."""

import asyncio
from dataclasses import replace

import torch
from ragged import LOGP, OBSERVATION, generate, next_turn, requests, start


def endless(**settings: object):
    """An engine whose turns have all the tokens they may have."""
    engine = start(**settings)
    engine._decoding._ends[:] = False
    return engine


def test_a_turn_that_comes_later_joins_the_batch_and_does_not_wait_for_it():
    engine, plain = endless(), endless()
    [long] = requests(1, max_tokens=700, stop=())
    short = [replace(r, stop=(), max_tokens=20 + i) for i, r in enumerate(requests(4))]

    async def together() -> list:
        [first] = engine.submit([long])
        while not engine.counts.prefilled:  # it is in a batch
            await asyncio.sleep(0.001)
        samples = await engine.generate(short)
        again = await engine.generate(next_turn(short, samples))
        assert not first.done()
        return [await first, *samples, *again]

    samples = asyncio.run(together())
    turns = [long, *short, *next_turn(short, samples[1:5])]
    for request, sample in zip(turns, samples, strict=True):
        [alone] = generate(plain, [request])
        assert sample.ids == alone.ids
        torch.testing.assert_close(torch.tensor(sample.logp), torch.tensor(alone.logp), **LOGP)
    assert engine.counts.steps == 699  # the others had none of their own
    # A prompt of 1 token, two of 1 and 2 that two turns share each; then, although the batch had
    # not ended, only what is new in a second turn: its last token and an observation.
    new = sum(1 + 1 + index % OBSERVATION for index in range(4))
    assert engine.counts.prefilled == 1 + (1 + 2) + new


def test_a_turn_that_nobody_waits_for_leaves_the_batch():
    engine = endless()
    long, other = (
        replace(r, max_tokens=n, stop=()) for r, n in zip(requests(2), (900, 60), strict=True)
    )

    async def give_up() -> object:
        first, second = engine.submit([long, other])
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert len(asyncio.run(give_up()).ids) == 60
    engine.load([], version=1)  # waits for what is sampled
    assert engine.counts.steps == 59


def test_a_longer_prompt_may_join_a_shorter_one_and_groups_may_join_groups():
    engine, plain = endless(), endless()
    group = [replace(requests()[0], key=("g", n), max_tokens=200, stop=()) for n in range(4)]
    ids = tuple(range(300, 420))
    later = [replace(r, ids=ids, key=("later", n), max_tokens=9) for n, r in enumerate(group)]

    async def together() -> list:
        first = engine.submit(group)
        while not engine.counts.prefilled:
            await asyncio.sleep(0.001)
        return await asyncio.gather(*first, *engine.submit(later))

    for request, sample in zip([*group, *later], asyncio.run(together()), strict=True):
        [alone] = generate(plain, [request])
        assert sample.ids == alone.ids
        torch.testing.assert_close(torch.tensor(sample.logp), torch.tensor(alone.logp), **LOGP)
    assert engine.counts.steps == 199
