"""What the tokens of a demonstration weigh: by turn, by kind, and thoughts against the rest."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from small import RECIPE

from agentrecipes.algorithms.protocol import Outputs
from agentrecipes.components import build
from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.errors import RecipeError
from agentrecipes.models.words import word_tokenizer
from agentrecipes.recipe.load import load
from agentrecipes.records import Message, Task
from agentrecipes.rollout.chat import Chat
from agentrecipes.training.batch import read_batch
from agentrecipes.training.telling import demonstration_rows
from agentrecipes.training.weighing import Weighing, thought_mask
from tolerances import FLOAT32

FIRST = "<think> a b </think> call"  # a token a word
SECOND = "<think> c </think> d e f"  # as the last turn, closed by an end token


@pytest.fixture(scope="module")
def chat():
    words = ["<think>", "</think>", "call", *"abcdefgx"]
    return Chat(word_tokenizer([*words, *(f" {word}" for word in words)], 64))


def told(*turns: str, weights=None):
    pairs = tuple((action, "x x") for action in turns)
    weights = weights or (1.0,) * len(turns)
    return Demonstration(Task("t", "train", "?"), (Message("user", "g"),), pairs, weights)


def row_of(demonstration, chat):
    [row] = demonstration_rows(demonstration, chat, number=0, role="inline")
    return row


def weights(weighing, demonstration, chat):
    """(text, weight) of each action token of the demonstration."""
    row = row_of(demonstration, chat)
    made = weighing.weighted(row, weighing.thoughts(row, demonstration, chat))
    own = row.action_mask
    assert not made.weight[~own].any() or weighing.observation_weight
    return [
        (chat.decode([token]).strip(), weight)
        for token, weight in zip(row.ids[own].tolist(), made.weight[own].tolist(), strict=True)
    ]


def test_thoughts_are_what_stands_before_the_end_of_thinking(chat):
    demonstration = told(FIRST, SECOND)
    row = row_of(demonstration, chat)
    mask = thought_mask(row, demonstration, chat=chat, end="</think>")
    texts = [chat.decode([token]).strip() for token in row.ids[mask].tolist()]
    assert texts == ["<think>", "a", "b", "</think>", "<think>", "c", "</think>"]


def test_a_balance_gives_thoughts_and_the_rest_a_mean_of_their_own(chat):
    # 7 tokens of thought share .7, one "call", "d e f" and the end of the message share .3.
    found = weights(Weighing(balance=0.7), told(FIRST, SECOND), chat)
    thought = [weight for text, weight in found if text in {"<think>", "a", "b", "c", "</think>"}]
    rest = [weight for text, weight in found if text not in {"<think>", "a", "b", "c", "</think>"}]
    assert (len(thought), len(rest)) == (7, 5)
    np.testing.assert_allclose(thought, 0.7 / 7, **FLOAT32)
    np.testing.assert_allclose(rest, 0.3 / 5, **FLOAT32)


def test_without_thoughts_the_rest_weighs_all_there_is(chat):
    found = weights(Weighing(balance=0.7), told("d e f"), chat)
    np.testing.assert_allclose([weight for _, weight in found], 1 / 4, **FLOAT32)


def test_a_turn_that_is_marked_as_a_mistake_is_in_no_mean(chat):
    # Only the second turn counts: 3 tokens of thought, 4 others.
    found = weights(Weighing(balance=0.4), told(FIRST, SECOND, weights=(0.0, 1.0)), chat)
    assert [weight for _, weight in found[:5]] == [0.0] * 5
    np.testing.assert_allclose([weight for _, weight in found[5:8]], 0.4 / 3, **FLOAT32)
    np.testing.assert_allclose([weight for _, weight in found[8:]], 0.6 / 4, **FLOAT32)


def test_nothing_but_mistakes_weighs_nothing(chat):
    found = weights(Weighing(balance=0.4), told(FIRST, weights=(0.0,)), chat)
    assert {weight for _, weight in found} == {0.0}


def test_a_plain_weighing_has_no_thoughts_and_keeps_the_turns_weights(chat):
    found = weights(Weighing(), told(FIRST, SECOND, weights=(0.0, 1.0)), chat)
    assert [weight for _, weight in found] == [0.0] * 5 + [1.0] * 7


def loss_of(chat, demonstrations, *, balance, logps):
    """The loss of `sft` where thoughts and all else have these log-probabilities."""
    weighing, sft = (
        Weighing(balance=balance),
        build("algorithm", {"name": "sft", "balance": balance}),
    )
    halves = Weighing(balance=0.5)  # finds the thoughts, whatever they weigh
    rows, found = [], []
    for number, each in enumerate(demonstrations):
        [row] = demonstration_rows(each, chat, number=number, role="inline")
        rows.append(weighing.weighted(row, weighing.thoughts(row, each, chat)))
        found.append(np.where(halves.thoughts(row, each, chat), *logps))
    batch = read_batch(rows)
    logp = batch.token_weight.new_zeros(batch.token_weight.shape)
    for place, values in enumerate(found):
        logp[place, : len(values)] = logp.new_tensor(values)
    return float(sft.loss(Outputs(logp), batch).total)


def test_the_loss_is_the_mean_over_demonstrations_of_the_balanced_means(chat):
    # log π = −1 on thoughts and −3 elsewhere: .7·1 + .3·3 = 1.6 for both, however long they are.
    told_all = [told(FIRST, SECOND), told("<think> a b c d </think> e")]
    loss = loss_of(chat, told_all, balance=0.7, logps=(-1.0, -3.0))
    np.testing.assert_allclose(loss, 1.6, **FLOAT32)


@pytest.mark.parametrize(
    ("balance", "expected"),
    [
        (None, (350.7 * 0.5 + 31.1 * 1.0) / 381.8),  # .5407
        (0.7, 0.65),  # SSB: .7·.5 + .3·1
        (0.5, 1.5 / 2),  # MSL with α = β = 1 is 1.5, twice a balance of one half
    ],
)
def test_long_thoughts_beside_short_calls_have_funreason_s_losses(chat, balance, expected):
    # L .5 on 350.7 tokens of thought and 1 on 31.1 others, here ten times as many.
    long = f"<think>{' a' * 3505} </think>{' d' * 310}"  # and the end of the message
    loss = loss_of(chat, [told(long)], balance=balance, logps=(-0.5, -1.0))
    np.testing.assert_allclose(loss, expected, rtol=1e-4)
    assert round(loss, 4) == round(expected, 4)


def learned_case(chat):
    """Two demonstrations with thoughts and one without; log π is −1 on thoughts, −3 elsewhere."""
    weighing = Weighing.of(build("algorithm", {"name": "sft", "balance": LEARNED}))
    assert weighing.balance == 0.7
    told_all = [told(FIRST, SECOND), told("<think> a b c d </think> e"), told("d e f")]
    rows, logps = [], []
    for number, each in enumerate(told_all):
        [row] = demonstration_rows(each, chat, number=number, role="inline")
        thought = weighing.thoughts(row, each, chat)
        rows.append(weighing.weighted(row, thought))
        logps.append(np.where(thought, -1.0, -3.0))
    batch = read_batch(rows)
    logp = batch.token_weight.new_zeros(batch.token_weight.shape)
    for place, values in enumerate(logps):
        logp[place, : len(values)] = logp.new_tensor(values)
    return batch, logp


LEARNED = {"start": 0.7, "least": 0.2, "most": 0.9}


@pytest.mark.parametrize(
    ("logit", "share"),
    # α = .2 + .7·σ(w): at w = ln(.5/.2) it is the start, at 0 the middle.
    [(math.log(2.5), 0.7), (0.0, 0.55), (50.0, 0.9), (-50.0, 0.2)],
)
def test_a_learned_balance_weighs_thoughts_between_its_bounds(chat, logit, share):
    sft = build("algorithm", {"name": "sft", "balance": LEARNED})
    batch, logp = learned_case(chat)
    own = torch.tensor(logit).requires_grad_()
    loss = sft.loss(Outputs(logp, own={"balance": own}), batch)
    # Two of α·1 + (1 − α)·3 and, without thoughts, one of 3; a mean over three.
    expected = (2 * (share + 3 * (1 - share)) + 3) / 3
    np.testing.assert_allclose(float(loss.total.detach()), expected, **FLOAT32)
    np.testing.assert_allclose(float(loss.terms["balance"]), share, **FLOAT32)
    # ∂L/∂α = 2/3·(L_t − L_f) = −4/3, and ∂α/∂w = (α − .2)(.9 − α)/.7.
    [slope] = torch.autograd.grad(loss.total, own)
    inner = (share - 0.2) * (0.9 - share) / 0.7
    np.testing.assert_allclose(float(slope), -4 / 3 * inner, **FLOAT32)


def test_a_learned_balance_begins_at_its_start_where_it_equals_the_fixed_one(chat):
    sft, fixed = (
        build("algorithm", {"name": "sft", "balance": balance}) for balance in (LEARNED, 0.7)
    )
    batch, logp = learned_case(chat)
    assert sft.needs.own
    assert not fixed.needs.own
    found = sft.loss(Outputs(logp, own=sft.own_parameters()), batch).total
    np.testing.assert_allclose(
        float(found), float(fixed.loss(Outputs(logp), batch).total), **FLOAT32
    )
    with pytest.raises(ValueError, match="sft needs its own balance"):
        sft.loss(Outputs(logp), batch)


@pytest.mark.parametrize(
    ("balance", "said"),
    [
        ("{start: 0.95}", "start: 0.95 is not between 0.3 .least. and 0.9 .most."),
        ("{start: 0.5, least: 0.5}", "start: 0.5 is not between 0.5"),
        ("{start: 0.5, least: 0}", "least: expected a number above 0"),
        ("{begin: 0.5}", "no field is called 'begin'"),
    ],
)
def test_a_learned_balance_without_room_is_refused(balance, said):
    words = f"stages.imitate.algorithm={{name: sft, balance: {balance}}}"
    with pytest.raises(RecipeError, match=said):
        load(RECIPE, [words])


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("stages.imitate.algorithm.balance=0.5", "observation_weight"),
        ("stages.imitate.algorithm.thought_end=done", "thought_end"),
    ],
)
def test_fields_that_mean_nothing_together_are_refused(words, named):
    with pytest.raises(RecipeError, match=f"{named} has no effect"):
        load(RECIPE, [words])


def test_a_thought_goes_on_to_the_last_end_of_its_turn(chat):
    demonstration = told("<think> a </think> b </think> c")
    row = row_of(demonstration, chat)
    mask = thought_mask(row, demonstration, chat=chat, end="</think>")
    assert chat.decode(row.ids[mask].tolist()) == "<think> a </think> b </think>"
