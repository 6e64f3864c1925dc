"""A strip's attention, by stretches and by blocks, beside each row's own."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention

from agentrecipes.training import blocks, spans
from agentrecipes.training.attention import Segments
from agentrecipes.training.spans import Span, Spans
from agentrecipes.training.tree import Node, Tree, shared
from tolerances import BFLOAT16, FLOAT64

HEADS, KEY_HEADS, WIDTH = 6, 2, 8


def branching(seed: int = 0) -> list[np.ndarray]:
    """Rows of two groups that share a start; two turns, the first one shared by half of a group."""
    random = np.random.default_rng(seed)

    def some(count: int) -> np.ndarray:
        return random.integers(0, 50, count)

    start, rows = some(21), []
    for group in range(2):
        prompt = np.concatenate([start, some(40 + group)])
        for _ in range(2):
            turn = np.concatenate([prompt, some(17)])
            rows += [np.concatenate([turn, some(length)]) for length in (1, 5, 30)]
    return rows


def states(tree: Tree, kind: torch.dtype) -> list[torch.Tensor]:
    """Queries, keys and values of a strip's tokens."""
    torch.manual_seed(3)
    count = sum(len(node.ids) for node in tree.nodes)
    sizes = (HEADS, KEY_HEADS, KEY_HEADS)
    drawn = [2.0 * torch.randn(count, heads, WIDTH, dtype=torch.float64) for heads in sizes]
    return [each.to(kind).requires_grad_() for each in drawn]


def row_by_row(tree: Tree, given: list[torch.Tensor]) -> torch.Tensor:
    """(N, H, D): each row's causal attention alone; rows agree on what they share."""
    starts = np.cumsum([0, *(len(node.ids) for node in tree.nodes)])
    out = torch.zeros_like(given[0])
    for way in tree.ways:
        places = np.concatenate([np.arange(starts[n], starts[n + 1]) for n in way])
        own = torch.from_numpy(places)
        q, k, v = (x[own].transpose(0, 1)[None] for x in given)
        found = scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5, enable_gqa=True)
        out = out.index_copy(0, own, found[0].transpose(0, 1))
    return out


def with_gradients(out: torch.Tensor, given: list[torch.Tensor]) -> list[torch.Tensor]:
    weight = torch.randn(out.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return [out, *torch.autograd.grad(out, given, weight.to(out.dtype))]


# Stretches of their own or several a call; whole or divided.
@pytest.mark.parametrize(("alone", "longest"), [(0, 256), (10**6, 256), (0, 7), (10**6, 7)])
def test_stretches_attend_as_each_row_alone(monkeypatch, alone, longest):
    monkeypatch.setattr(spans, "ALONE", alone)
    monkeypatch.setattr(spans, "LONGEST", longest)
    tree = shared(branching())
    assert len(tree.nodes) == 19  # the start, 2 prompts, 4 turns, 12 ends
    given = states(tree, torch.float64)
    found = with_gradients(Segments(tree.nodes).attended(given, scale=0.5), given)
    wanted = with_gradients(row_by_row(tree, given), given)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, **FLOAT64)


@pytest.mark.parametrize("small", [0, 1 << 16])  # blocks of one node each or nearly, and one block
def test_blocks_attend_as_each_row_alone(monkeypatch, small):
    monkeypatch.setattr(blocks, "SMALL", small)
    monkeypatch.setattr(blocks, "WASTE", 1 if small == 0 else 2)
    tree = shared(branching())
    given = states(tree, torch.float64)
    gathered = Segments(tree.nodes).blocks
    assert (len(gathered.blocks) > 2) == (small == 0)
    found = with_gradients(gathered.attended(given, scale=0.5), given)
    wanted = with_gradients(row_by_row(tree, given), given)
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one, other, **FLOAT64)


def test_attention_in_bfloat16_stays_in_bfloat16_and_near():
    tree = shared(branching())
    low = states(tree, torch.bfloat16)
    high = [each.detach().double() for each in low]
    found = Segments(tree.nodes).attended(low, scale=0.5)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.double(), row_by_row(tree, high), **BFLOAT16)


def test_dropout_is_not_forgotten():
    tree = shared(branching())
    given = states(tree, torch.float32)
    made = Segments(tree.nodes)
    torch.manual_seed(0)
    dropped = made.attended(given, dropout=0.5)
    assert (dropped - made.attended(given)).abs().max() > 0.1


def test_what_stands_behind_a_short_stretch_weighs_nothing_however_large():
    # A query so near its own key that a later key's share of its sum would overflow.
    tree = shared([np.arange(3), np.arange(10, 20)])
    given = [100.0 * torch.ones(13, 1, 8) for _ in range(3)]
    given[1][0] *= -1.0  # the first token's own key is the worst
    given = [each.requires_grad_() for each in given]
    for each in with_gradients(Segments(tree.nodes).attended(given, scale=1.0), given):
        assert torch.isfinite(each).all()


def node(count: int, start: int, *path: int) -> Node:
    return Node(np.zeros(count, dtype=np.int64), start, path)


def test_the_tokens_behind_a_node_see_all_of_it():
    # Strip: root 0-3, its child 3-5, that one's children 5-6 and 6-8, another root's child 8-9.
    nodes = [node(3, 0), node(2, 3, 0), node(1, 5, 0, 1), node(2, 5, 0, 1), node(1, 3, 0)]
    made = Spans.of(nodes, width=10**6)
    assert made.spans == (Span(0, 3, 9), Span(3, 5, 8))
    assert made.alone == ((0, 3), (3, 5), (5, 6), (6, 8), (8, 9))
    assert made.together == ()


def test_a_long_stretch_is_divided_and_each_part_sees_those_before_it(monkeypatch):
    monkeypatch.setattr(spans, "LONGEST", 4)
    made = Spans.of([node(9, 0), node(2, 9, 0)], width=10**6)
    assert made.alone == ((0, 4), (4, 8), (8, 9), (9, 11))
    assert made.spans == (Span(0, 9, 11), Span(0, 4, 8), Span(0, 8, 9))


def test_short_stretches_share_a_call_with_those_of_their_length(monkeypatch):
    monkeypatch.setattr(spans, "SMALL", 0)
    made = Spans.of([node(2, 0), node(5, 0), node(3, 0)], width=1)
    # 2 and 3 tokens: 18 places for 13 pairs, within 1.5 times; with 5, 75 for 38.
    first, second = made.together
    assert first.places.tolist() == [[0, 1, 0], [7, 8, 9]]
    assert first.pads.tolist() == [[False, False, True], [False, False, False]]
    assert first.real.tolist() == [0, 1, 3, 4, 5]
    assert first.where.tolist() == [0, 1, 7, 8, 9]
    assert second.places.tolist() == [[2, 3, 4, 5, 6]]
