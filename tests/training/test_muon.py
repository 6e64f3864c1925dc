"""Muon against the singular value decomposition, and against PyTorch's own."""

from __future__ import annotations

import copy

import pytest
import torch

from agentrecipes.models.tiny import Tiny
from agentrecipes.recipe.schema import Optimizer
from agentrecipes.training.module import PolicyModule
from agentrecipes.training.muon import orthogonal
from agentrecipes.training.optimizer import build, set_rate

SHAPES = [(4, 4), (4, 7), (7, 4), (4, 4), (5,)]


def matrices(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def quintic(s: torch.Tensor) -> torch.Tensor:
    return 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5


@pytest.mark.parametrize("shape", [(1, 4, 4), (3, 4, 9), (3, 9, 4)])
def test_only_the_singular_values_change_and_all_come_near_one(shape):
    given = matrices(*shape)
    u, s, v = torch.linalg.svd(given, full_matrices=False)
    values = s / s.square().sum(-1, keepdim=True).sqrt()
    for _ in range(5):
        values = quintic(values)
    made = orthogonal(given)
    torch.testing.assert_close(made, (u * values[:, None]) @ v, rtol=0, atol=1e-12)
    assert values.min() > 0.3
    assert values.max() < 1.3


def test_a_gradient_of_zeros_moves_nothing():
    assert orthogonal(torch.zeros(2, 3, 4)).eq(0).all()


def fields(**more: object) -> Optimizer:
    return Optimizer.model_validate({"name": "muon", "learning_rate": 0.1, **more})


def network(seed: int) -> list[torch.nn.Parameter]:
    random = torch.Generator().manual_seed(seed)
    return [torch.nn.Parameter(torch.randn(*shape, generator=random)) for shape in SHAPES]


def descend(optimizer: torch.optim.Optimizer, params: list, steps: range) -> None:
    for step in steps:
        random = torch.Generator().manual_seed(100 + step)
        for each in params:
            each.grad = torch.randn(each.shape, generator=random)
        optimizer.step()


def test_matrices_follow_torchs_muon_and_the_rest_torchs_adamw(monkeypatch):
    ours, theirs = network(0), network(0)
    made = build(fields(weight_decay=0.2), [{"params": ours, "label": "policy"}], [ours[3]])
    descend(made, ours, range(3))
    # PyTorch rounds to bfloat16 on the way; without that the two are the same arithmetic.
    monkeypatch.setattr(torch.Tensor, "bfloat16", lambda self: self.clone())
    options = {"lr": 0.1, "weight_decay": 0.2}
    muon = torch.optim.Muon(theirs[:3], adjust_lr_fn="match_rms_adamw", **options)
    pair = [muon, torch.optim.AdamW(theirs[3:], betas=(0.9, 0.95), **options)]
    for step in range(3):
        random = torch.Generator().manual_seed(100 + step)
        for each in theirs:
            each.grad = torch.randn(each.shape, generator=random)
        for optimizer in pair:
            optimizer.step()
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=0, atol=2e-6)
    assert not torch.equal(ours[0], network(0)[0])


def test_a_step_without_gradients_moves_nothing():
    params = network(1)
    made = build(fields(weight_decay=0.2), [{"params": params, "label": "policy"}])
    descend(made, params, range(1))
    before = [each.detach().clone() for each in params]
    made.zero_grad(set_to_none=True)
    made.step()
    assert all(torch.equal(one, other) for one, other in zip(params, before, strict=True))


def test_a_saved_state_goes_on_bit_for_bit():
    params = network(2)
    made = build(fields(), [{"params": params, "label": "policy"}])
    descend(made, params, range(2))
    again = [torch.nn.Parameter(each.detach().clone()) for each in params]
    loaded = build(fields(), [{"params": again, "label": "policy"}])
    loaded.load_state_dict(copy.deepcopy(made.state_dict()))
    for optimizer, own in ((made, params), (loaded, again)):
        set_rate(optimizer, 0.5)
        descend(optimizer, own, range(2, 4))
    assert all(torch.equal(one, other) for one, other in zip(params, again, strict=True))


def test_the_closure_is_called_once_with_gradients_on():
    [weight] = params = [torch.nn.Parameter(torch.ones(2, 2))]
    made = build(fields(), [{"params": params, "label": "policy"}])
    calls = []

    def closure() -> torch.Tensor:
        loss = (weight * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum()
        loss.backward()
        calls.append(loss.item())
        return loss

    assert made.step(closure).item() == 10.0
    assert calls == [10.0]
    assert not torch.equal(weight, torch.ones(2, 2))


def test_tables_by_token_vectors_and_the_value_head_are_no_matrices():
    module = PolicyModule(Tiny(layers=1).build(0), torch.nn.Linear(64, 1))
    made = build(fields(), module.groups(), module.tables())
    counts = [(g["label"], g["matrices"], len(g["params"])) for g in made.param_groups]
    # q k v o gate up down; embeddings, head and three norms; the value head's weight and bias
    assert counts == [("policy", True, 7), ("policy", False, 5), ("value", False, 2)]
