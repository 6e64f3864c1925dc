"""Rows become strips; what the model says of a strip equals what it says of each row alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from makers import llama, random_rows, row

from agentrecipes.training.module import PolicyModule
from agentrecipes.training.pack import micro_batches, partition, strip
from tolerances import FLOAT32, FLOAT64


def scored(rows):
    return [each.weight > 0 for each in rows]


def plain_logp(model, ids):
    """(T,) log-probability of each token given those before it, by the model's own forward."""
    with torch.no_grad():
        logits = model(torch.tensor([list(ids)])).logits[0].double()
    logp = logits.log_softmax(-1)
    own = [0.0] + [float(logp[t - 1, ids[t]]) for t in range(1, len(ids))]
    return torch.tensor(own, dtype=torch.float64)


def test_a_strip_lays_rows_end_to_end_and_remembers_what_is_scored():
    made = strip(*(lambda rows: (rows, scored(rows)))([row([1, 2, 7], [2]), row([3, 8], [1])]))
    assert made.ids.tolist() == [[1, 2, 7, 3, 8]]
    assert made.positions.tolist() == [[0, 1, 2, 0, 1]]
    assert made.scored.tolist() == [1, 3]
    assert made.targets.tolist() == [7, 8]
    assert made.index.tolist() == [[2, 2, 0], [2, 1, 2]]
    assert made.spread(torch.tensor([-1.0, -2.0])).tolist() == [[0, 0, -1], [0, -2, 0]]


@pytest.mark.parametrize("lengths", [[7], [5, 5], [3, 9, 2, 30], [2] * 12])
def test_packed_log_probabilities_equal_those_of_each_row_alone(lengths):
    rows = random_rows(lengths, 50, seed=sum(lengths))
    model = llama()
    expected = [plain_logp(model, each.ids.tolist()) for each in rows]
    module = PolicyModule(model, None)
    logp = module(strip(rows, scored(rows))).logp.detach()
    for number, each in enumerate(rows):
        mask = torch.from_numpy(each.weight > 0)
        own = logp[number, : len(each)]
        torch.testing.assert_close(own[mask].double(), expected[number][mask], **FLOAT32)
        assert torch.equal(own[~mask], torch.zeros(int((~mask).sum())))


def test_packed_gradients_equal_those_of_the_plain_computation_in_float64():
    rows = random_rows([4, 11, 6], 50, seed=3)
    plain, packed = llama().double(), llama().double()
    total = sum(
        (plain_logp_with_gradient(plain, each) * torch.from_numpy(each.weight).double()).sum()
        for each in rows
    )
    total.backward()
    PolicyModule(packed, None)(strip(rows, scored(rows))).logp.sum().backward()
    for (name, one), (_, other) in zip(
        plain.named_parameters(), packed.named_parameters(), strict=True
    ):
        # transformers computes norms and rotary angles in float32 even in a float64 model, and
        # the head's outcomes are float32 here: some 1e-7 of gradients of some 100
        torch.testing.assert_close(other.grad, one.grad, rtol=1e-5, atol=1e-4, msg=name)


def plain_logp_with_gradient(model, each):
    logits = model(torch.from_numpy(each.ids)[None]).logits[0]
    logp = logits.log_softmax(-1)
    picked = logp[:-1].gather(1, torch.from_numpy(each.ids)[1:, None])[:, 0]
    return torch.cat([picked.new_zeros(1), picked])


def test_a_row_never_sees_its_neighbours():
    rows = random_rows([6, 6], 50, seed=5)
    module = PolicyModule(llama(), None)
    before = module(strip(rows, scored(rows))).logp[0]
    other = [rows[0], random_rows([6], 50, seed=6)[0]]
    assert torch.equal(module(strip(other, scored(other))).logp[0, :6], before[:6])


def test_temperature_divides_the_logits():
    [only] = random_rows([8], 50, seed=1)
    model = llama()
    logits = model(torch.from_numpy(only.ids)[None]).logits[0].double() / 0.5
    expected = logits.log_softmax(-1)
    got = PolicyModule(model, None)(strip([only], scored([only])), temperature=0.5).logp[0].double()
    for t in np.flatnonzero(only.weight):
        torch.testing.assert_close(got[t], expected[t - 1, only.ids[t]], **FLOAT32)


def test_the_head_in_chunks_gives_the_same_values_and_gradients(monkeypatch):
    rows = random_rows([9, 14], 50, seed=2)
    whole, chunked = llama(), llama()
    one = PolicyModule(whole, None)(strip(rows, scored(rows)), entropy=True)
    (one.logp.sum() + one.entropy.sum()).backward()
    monkeypatch.setattr(
        "agentrecipes.training.scoring.LOGIT_BYTES", 50 * 4 * 3 * 2
    )  # two rows each
    two = PolicyModule(chunked, None)(strip(rows, scored(rows)), entropy=True)
    (two.logp.sum() + two.entropy.sum()).backward()
    torch.testing.assert_close(two.logp, one.logp, **FLOAT32)
    torch.testing.assert_close(two.entropy, one.entropy, **FLOAT32)
    for a, b in zip(whole.parameters(), chunked.parameters(), strict=True):
        torch.testing.assert_close(b.grad, a.grad, **FLOAT32)


def test_entropy_equals_its_definition():
    [only] = random_rows([5], 50, seed=4)
    model = llama()
    logp = model(torch.from_numpy(only.ids)[None]).logits[0].double().log_softmax(-1)
    expected = -(logp.exp() * logp).sum(-1)
    got = PolicyModule(model, None)(strip([only], scored([only])), entropy=True).entropy[0].double()
    for t in np.flatnonzero(only.weight):
        torch.testing.assert_close(got[t], expected[t - 1], **FLOAT32)


lengths_of_trajectories = st.lists(
    st.lists(st.integers(2, 20), min_size=1, max_size=3), min_size=1, max_size=12
)


@given(lengths_of_trajectories, st.integers(20, 60))
def test_a_partition_holds_every_row_once_and_keeps_trajectories_whole(trajectories, tokens):
    rows = [
        row(list(range(length)), [1], number)
        for number, own in enumerate(trajectories)
        for length in own
    ]
    parts = partition(rows, tokens, len(rows), share=False)
    assert sorted(n for part in parts for n in part) == list(range(len(rows)))
    homes = [{rows[n].trajectory for n in part} for part in parts]
    assert sum(len(home) for home in homes) == len(trajectories)
    for part in parts:
        total = sum(len(rows[n]) for n in part)
        assert total <= tokens or len({rows[n].trajectory for n in part}) == 1


@given(lengths_of_trajectories, st.integers(20, 60), st.booleans())
def test_a_partition_keeps_groups_whole_where_the_rows_name_them(trajectories, tokens, share):
    rows = [
        replace(row(list(range(length)), [1], number), group=number // 2)
        for number, own in enumerate(trajectories)
        for length in own
    ]
    parts = partition(rows, tokens, len(rows), share=share)
    assert sorted(n for part in parts for n in part) == list(range(len(rows)))
    homes = [{rows[n].group for n in part} for part in parts]
    assert sum(len(home) for home in homes) == (len(trajectories) + 1) // 2


@given(st.lists(st.integers(2, 40), min_size=1, max_size=40), st.integers(40, 200))
@example([40] * 10, 79)  # no two rows fit together
def test_the_budgeted_number_of_micro_batches_always_suffices(lengths, tokens):
    rows = [row(list(range(length)), [1], number) for number, length in enumerate(lengths)]
    most = micro_batches(len(rows), 40, tokens)
    parts = partition(rows, tokens, most, share=False)
    assert len(parts) <= most
    assert max(sum(len(rows[n]) for n in part) for part in parts) <= tokens


def test_rows_beyond_the_budget_never_open_more_micro_batches_than_agreed():
    rows = [row(list(range(30)), [1], number) for number in range(10)]
    parts = partition(rows, 30, 2, share=False)
    assert len(parts) == 2
    assert sorted(n for part in parts for n in part) == list(range(10))


def test_float64_tolerance_is_tight_enough_to_see_one_wrong_neighbour():
    # A guard for the tests above: a row shifted by one position differs by far more than allowed.
    rows = random_rows([12], 50, seed=9)
    model = llama().double()
    right = plain_logp(model, rows[0].ids.tolist())
    wrong = plain_logp(model, np.roll(rows[0].ids, 1).tolist())
    assert (right - wrong).abs().max() > 1e3 * FLOAT64["atol"]
