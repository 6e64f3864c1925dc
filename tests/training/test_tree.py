"""Rows as a tree: nothing is lost, nothing is there twice, and the model cannot tell."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from makers import llama, row

from agentrecipes.training import tree
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.pack import partition, strip
from agentrecipes.training.tree import in_order, lone, shared
from tolerances import FLOAT32


@pytest.fixture(autouse=True)
def _share_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Share from two tokens on, so that small rows do."""
    monkeypatch.setattr(tree, "LEAST", 2)


def arrays(*rows: list[int]) -> list[np.ndarray]:
    return [np.array(ids, dtype=np.int64) for ids in rows]


def written(made, number):
    return np.concatenate([made.nodes[n].ids for n in made.ways[number]]).tolist()


def test_a_shared_beginning_is_a_node():
    made = shared(arrays([1, 2, 7], [1, 2, 8, 9], [3, 4]))
    nodes = {(tuple(node.ids.tolist()), node.start, node.path) for node in made.nodes}
    [root] = [n for n, node in enumerate(made.nodes) if node.ids.tolist() == [1, 2]]
    assert nodes == {((1, 2), 0, ()), ((7,), 2, (root,)), ((8, 9), 2, (root,)), ((3, 4), 0, ())}
    assert [written(made, n) for n in range(3)] == [[1, 2, 7], [1, 2, 8, 9], [3, 4]]


def test_a_row_that_ends_where_others_go_on_and_a_row_twice():
    made = shared(arrays([1, 2], [1, 2, 3, 4], [1, 2, 3, 4]))
    assert sorted(len(node.ids) for node in made.nodes) == [2, 2]
    assert [written(made, n) for n in range(3)] == [[1, 2], [1, 2, 3, 4], [1, 2, 3, 4]]


def test_a_beginning_too_short_to_share_is_not(monkeypatch):
    monkeypatch.setattr(tree, "LEAST", 3)
    assert len(shared(arrays([1, 2, 7], [1, 2, 8])).nodes) == 2
    assert len(shared(arrays([1, 2, 3, 7], [1, 2, 3, 8])).nodes) == 3


few = st.lists(st.lists(st.integers(0, 2), min_size=2, max_size=9), min_size=1, max_size=9)


@given(few)
def test_every_row_is_whole_and_the_tree_has_what_is_promised(rows):
    given_rows = arrays(*rows)
    made = shared(given_rows)
    assert [written(made, n) for n in range(len(rows))] == rows
    assert sum(len(node.ids) for node in made.nodes) == sum(map(len, rows)) - sum(
        in_order(given_rows)[1]
    )
    for node in made.nodes:
        assert len(node.ids) > 0
        assert node.start == sum(len(made.nodes[n].ids) for n in node.path)


def test_nothing_is_shared_where_nothing_may_be():
    made = lone(arrays([1, 2, 3], [1, 2, 3]))
    assert [node.path for node in made.nodes] == [(), ()]


def branching(seed=0):
    """Two groups of four rows: a prompt, turns that some share, and one row twice."""
    random = np.random.default_rng(seed)

    def some(count: int) -> list[int]:
        return random.integers(0, 50, count).tolist()

    made = []
    for group in range(2):
        prompt, turn, reply = some(9), some(3), some(4 + group)
        ends = [turn + reply + some(6), turn + reply + some(1), some(12), turn + some(3)]
        for end in [*ends, ends[0]]:
            ids = prompt + end
            made.append(row(ids, range(len(prompt), len(ids)), len(made)))
    return made


def scored(rows):
    return [each.weight > 0 for each in rows]


def outcome(rows, share):
    """Log-probabilities, values and gradients of a loss that weighs every token differently."""
    model = llama()
    torch.manual_seed(1)
    module = PolicyModule(model, torch.nn.Linear(32, 1))
    made = strip(rows, scored(rows), share=share)
    out = module(made, value=True, entropy=True)
    weight = torch.from_numpy(np.random.default_rng(2).normal(size=out.logp.shape)).float()
    (weight * (out.logp + 0.3 * out.value + 0.1 * out.entropy)).sum().backward()
    gradients = [each.grad for each in module.parameters()]
    return made, [out.logp, out.value, out.entropy], gradients


def test_sharing_changes_neither_outputs_nor_gradients():
    rows = branching()
    plain, outs, gradients = outcome(rows, share=False)
    packed, others, other_gradients = outcome(rows, share=True)
    assert packed.ids.shape[1] < 0.6 * plain.ids.shape[1]
    assert len(packed.targets) < len(plain.targets)
    for one, other in zip(outs, others, strict=True):
        torch.testing.assert_close(other, one, **FLOAT32)
    for one, other in zip(gradients, other_gradients, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=3e-5)  # sums of some 100 tokens


def test_a_token_that_only_one_of_two_rows_scores_is_scored_for_that_one():
    rows = [row([1, 2, 3, 4, 5], [3, 4], 0), row([1, 2, 3, 4, 6], [4], 1)]
    made = strip(rows, scored(rows))
    assert made.ids.shape == (1, 6)
    assert made.targets.tolist() == [4, 5, 6]
    assert made.index.tolist() == [[3, 3, 3, 0, 1], [3, 3, 3, 3, 2]]


def test_a_changed_token_is_seen_only_behind_it_and_on_its_branch():
    rows = branching()
    before = outcome(rows, share=True)[1][0]
    changed = list(rows)
    ids = rows[2].ids.copy()
    ids[-4] = (ids[-4] + 1) % 50
    changed[2] = row(ids.tolist(), range(9, len(ids)), 2)
    after = outcome(changed, share=True)[1][0]
    differs = (before != after).any(dim=1)
    assert torch.nonzero(differs)[:, 0].tolist() == [2]
    first = int(torch.nonzero(before[2] != after[2])[0])
    assert first == len(ids) - 4


@given(few, st.integers(9, 30))
def test_a_partition_keeps_what_begins_alike_together_and_within_its_budget(rows, tokens):
    own = [row(ids, [1], number) for number, ids in enumerate(rows)]
    parts = partition(own, tokens, len(own))
    assert sorted(n for part in parts for n in part) == list(range(len(own)))
    for part in parts:
        made = shared([own[n].ids for n in part])
        assert sum(len(node.ids) for node in made.nodes) <= tokens


def test_a_group_is_not_torn_apart_by_rows_of_its_lengths():
    own = [row([g, 5, 5, *range(n)], [1], 3 * g + n) for n in range(1, 4) for g in range(3)]
    parts = partition(own, 6, 3)
    assert [{int(own[n].ids[0]) for n in part} for part in parts] == [{0}, {1}, {2}]
