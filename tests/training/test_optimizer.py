"""The learning rate by hand, and the optimizer's groups."""

from __future__ import annotations

import pytest
import torch

from agentrecipes.recipe.schema import Optimizer
from agentrecipes.training.optimizer import build, factor, set_rate

TOTAL = 10


def fields(decay: str, **more: object) -> Optimizer:
    return Optimizer.model_validate(
        {"learning_rate": 0.5, "warmup_steps": 3, "decay": decay, "decay_to": 0.1, **more}
    )


@pytest.mark.parametrize("decay", ["constant", "linear", "cosine"])
def test_the_warm_up_is_linear_and_never_zero(decay):
    # (step + 1) / (warm-up + 1), then the full rate
    shares = [factor(fields(decay), step, TOTAL) for step in range(4)]
    assert shares == [0.25, 0.5, 0.75, 1.0]


def test_a_constant_rate_stays():
    assert [factor(fields("constant"), step, TOTAL) for step in (3, 9, 99)] == [1.0] * 3


@pytest.mark.parametrize(
    ("decay", "step", "expected"),
    [
        # After the warm-up 6 steps lead from step 3 to step 9, the last one.
        ("linear", 5, 0.1 + 0.9 * (1 - 2 / 6)),
        ("linear", 6, 0.55),
        ("linear", 9, 0.1),
        # (1 + cos 60°) / 2 = 0.75 after a third of them, (1 + cos 90°) / 2 = 0.5 after half
        ("cosine", 5, 0.1 + 0.9 * 0.75),
        ("cosine", 6, 0.55),
        ("cosine", 8, 0.1 + 0.9 * 0.5 * (1 - 3**0.5 / 2)),  # cos 150°
        ("cosine", 9, 0.1),
        ("linear", 12, 0.1),  # beyond the end it goes no lower
    ],
)
def test_the_decay_ends_at_its_share_in_the_last_step(decay, step, expected):
    assert factor(fields(decay), step, TOTAL) == pytest.approx(expected, abs=1e-12)


def test_a_stage_as_short_as_its_warm_up_does_not_divide_by_zero():
    assert [factor(fields("linear"), step, 3) for step in range(3)] == [0.25, 0.5, 0.75]
    assert factor(fields("cosine", warmup_steps=0), 0, 1) == 1.0


def parameters() -> list[dict]:
    policy, value = (torch.nn.Parameter(torch.ones(2)) for _ in range(2))
    return [{"params": [policy], "label": "policy"}, {"params": [value], "label": "value"}]


@pytest.mark.parametrize("name", ["adamw", "sgd"])
def test_the_value_head_has_a_rate_of_its_own(name):
    made = build(fields("linear", name=name, value_learning_rate=2.0), parameters())
    assert {g["label"]: (g["peak"], g["lr"]) for g in made.param_groups} == {
        "policy": (0.5, 0.5),
        "value": (2.0, 2.0),
    }
    set_rate(made, 0.25)
    set_rate(made, 0.5)  # of the peak, not of what it was
    assert {g["label"]: g["lr"] for g in made.param_groups} == {"policy": 0.25, "value": 1.0}


def test_without_a_rate_of_its_own_the_value_head_has_the_policys():
    made = build(fields("linear"), parameters())
    assert [group["peak"] for group in made.param_groups] == [0.5, 0.5]


def test_a_step_of_gradient_descent_is_rate_times_gradient_and_decay():
    groups = parameters()
    made = build(fields("constant", name="sgd", weight_decay=0.1), groups)
    [policy] = groups[0]["params"]
    policy.grad = torch.tensor([1.0, -2.0])
    set_rate(made, 0.5)
    made.step()
    # 1 - 0.25 · (gradient + 0.1 · 1)
    assert policy.tolist() == pytest.approx([1 - 0.25 * 1.1, 1 + 0.25 * 1.9], abs=1e-6)
