"""What every algorithm must hold, whatever its formula: subclass, and give the algorithm.

class TestMine(AlgorithmSuite):
    @pytest.fixture
    def algorithm(self):
        return Mine()
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from agentrecipes.algorithms.protocol import Algorithm, Loss, Needs, Outputs
from agentrecipes.components import build
from agentrecipes.records import Batch

NOISE = torch.tensor(torch.nan, dtype=torch.float64)

TRAJECTORY = (0, 1, 1, 2, 3, 4, 5)  # of each row: trajectory 1 has forked
GROUP = (0, 0, 0, 1, 1, 1)  # of each trajectory
MIXED = ([0], [1, 2, 5], [3, 4, 6])  # rows of micro-batches: trajectories are whole
GROUPS = ([4, 5, 6], [0, 1, 2, 3])  # ... and so are groups
LENGTH, TURNS = 9, 4
KL_COEFFICIENT = 0.05


def random_batch(seed: int = 0) -> Batch:
    """Seven rows of six trajectories in two groups, float64; off the action mask it is noise."""
    random = torch.Generator().manual_seed(seed)

    def normal(*shape: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*shape, generator=random, dtype=torch.float64)

    rows, trajectory = len(TRAJECTORY), torch.tensor(TRAJECTORY)
    mask = torch.rand(rows, LENGTH, generator=random) < 0.6
    mask[:, 1] = True  # no row is without an action
    turn_index = torch.arange(LENGTH).expand(rows, LENGTH) // 5  # two turns a row
    turn_index = turn_index + torch.tensor([0, 0, 2, 0, 0, 0, 0])[:, None]  # the fork goes on
    turn_index = torch.where(mask, turn_index, -1)
    logp_old, turn_rewards = normal(rows, LENGTH) - 1.0, normal(len(GROUP), TURNS)
    turn_rewards[:, 2:] *= torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])[:, None]
    owner = trajectory[:, None].expand_as(mask)[mask]
    turns = torch.unique(torch.stack([owner, turn_index[mask]]), dim=1).shape[1]
    return Batch(
        action_mask=mask,
        logp_old=logp_old,
        logp_rollout=logp_old + normal(rows, LENGTH, scale=0.1),
        logp_ref=logp_old + normal(rows, LENGTH, scale=0.2),
        values_old=normal(rows, LENGTH),
        advantage=torch.zeros(0, dtype=torch.float64),
        value_target=torch.zeros(0, dtype=torch.float64),
        token_weight=torch.rand(rows, LENGTH, generator=random, dtype=torch.float64) * mask,
        turn_index=turn_index,
        turn_rewards=turn_rewards,
        returns=turn_rewards.sum(dim=1),
        trajectory=trajectory,
        group=torch.tensor(GROUP),
        action_tokens=float(mask.sum()),
        sequences=float(len(GROUP)),
        total_weight=10.0,
        kl_coefficient=KL_COEFFICIENT,
        turns=float(turns),
        turn_state=torch.randint(0, 2, (len(GROUP), TURNS), generator=random),
        part_returns=turn_rewards.clone(),
        part_weights=(1.0,) * TURNS,
    )


def prepared(algorithm: Algorithm, batch: Batch) -> Batch:
    """The batch with the algorithm's advantages and value targets."""
    targets = algorithm.value_targets(batch)
    return replace(batch, advantage=algorithm.advantages(batch), value_target=targets)


def moved(batch: Batch, seed: int = 0) -> Outputs:
    """What a policy says that has moved since `batch` was collected: ratios from about 0.5 to 2."""
    random = torch.Generator().manual_seed(seed + 1000)
    shape = batch.action_mask.shape
    step, value, entropy = torch.randn(3, *shape, generator=random, dtype=torch.float64)
    logp = torch.where(batch.action_mask, batch.logp_old, 0.0) + 0.3 * step
    return Outputs(logp.requires_grad_(), value, entropy.exp())


def rows_of(batch: Batch, rows: Sequence[int]) -> Batch:
    """A micro-batch: some rows, with the denominators of the whole."""
    per_row = (
        *("action_mask", "logp_old", "logp_rollout", "logp_ref", "values_old", "advantage"),
        *("value_target", "token_weight", "turn_index", "trajectory"),
    )
    index = torch.tensor(rows)
    fields: dict[str, Any] = {name: getattr(batch, name) for name in per_row}
    given = {name: x for name, x in fields.items() if isinstance(x, Tensor) and x.numel()}
    chosen: dict[str, Any] = {name: x[index] for name, x in given.items()}
    return replace(batch, **chosen)


def outputs_of(outputs: Outputs, rows: Sequence[int]) -> Outputs:
    """What the model says about some rows."""
    index = torch.tensor(rows)
    fields = (outputs.logp, outputs.value, outputs.entropy)
    logp, value, entropy = (None if x is None else x[index] for x in fields)
    assert logp is not None
    return Outputs(logp, value, entropy, outputs.own)


def noisy(x: Tensor, mask: Tensor) -> Tensor:
    """`x`, with NaN off the mask."""
    return torch.where(mask, x, NOISE)


class AlgorithmSuite:
    """One fixture, ``algorithm``; every test is about one promise of the protocol."""

    def test_its_fields_come_back_from_what_it_dumps(self, algorithm: Any) -> None:
        assert build("algorithm", algorithm.dump()) == algorithm
        assert isinstance(algorithm.needs, Needs)

    def test_advantages_are_on_action_tokens_alone(self, algorithm: Any) -> None:
        batch = random_batch()
        advantages = algorithm.advantages(batch)
        assert advantages.shape == batch.action_mask.shape
        assert advantages.dtype == batch.logp_old.dtype
        assert not advantages[~batch.action_mask].any()

    def test_what_is_off_the_mask_does_not_matter_even_nan(self, algorithm: Any) -> None:
        batch, outputs = random_batch(), moved(random_batch())
        mask = batch.action_mask
        names = ("logp_old", "logp_rollout", "logp_ref", "values_old")
        wild: dict[str, Any] = {name: noisy(getattr(batch, name), mask) for name in names}
        spoilt = replace(batch, **wild)
        logp = noisy(outputs.logp.detach(), mask).requires_grad_()
        assert outputs.value is not None
        assert outputs.entropy is not None
        blind = Outputs(logp, noisy(outputs.value, mask), noisy(outputs.entropy, mask))
        plain = _gradient(algorithm, prepared(algorithm, batch), outputs)
        _same(_gradient(algorithm, prepared(algorithm, spoilt), blind), plain)

    def test_a_micro_batch_gives_its_share(self, algorithm: Any) -> None:
        batch = prepared(algorithm, random_batch())
        whole = _loss(algorithm, batch, moved(batch))
        parts = [
            algorithm.loss(outputs_of(moved(batch), rows), rows_of(batch, rows))
            for rows in (GROUPS if algorithm.needs.whole_groups else MIXED)
        ]
        summed = torch.stack([part.total for part in parts]).sum()
        _same(summed, whole.total)
        for name, term in whole.terms.items():
            share = torch.stack([part.terms[name] for part in parts]).sum()
            _same(share, term)

    def test_the_order_of_rows_does_not_matter(self, algorithm: Any) -> None:
        batch = random_batch()
        rows = [6, 1, 2, 0, 5, 4, 3]
        turned = rows_of(batch, rows)
        advantages = algorithm.advantages(turned)
        _same(advantages, algorithm.advantages(batch)[rows])
        ready = prepared(algorithm, batch)
        loss = algorithm.loss(outputs_of(moved(batch), rows), rows_of(ready, rows))
        whole = _loss(algorithm, ready, moved(batch))
        _same(loss.total, whole.total)

    def test_rows_that_need_not_be_computed_have_no_loss(self, algorithm: Any) -> None:
        if algorithm.needs.every_row:
            return
        batch, outputs = random_batch(), moved(random_batch())
        dull = replace(prepared(algorithm, batch), advantage=torch.zeros_like(batch.values_old))
        for each in _gradient(algorithm, dull, outputs):
            assert not each.any()

    def test_a_return_that_is_not_a_number_teaches_nothing(self, algorithm: Any) -> None:
        batch = random_batch()
        returns, by_turn = batch.returns.clone(), batch.turn_rewards.clone()
        returns[3], by_turn[3, 0] = torch.nan, torch.nan
        broken = prepared(algorithm, replace(batch, returns=returns, turn_rewards=by_turn))
        assert torch.isfinite(broken.advantage).all()
        assert not broken.advantage[4].any()  # the row of trajectory 3
        assert torch.isfinite(_loss(algorithm, broken, moved(batch)).total)

    def test_nothing_to_train_on_is_a_loss_of_zero(self, algorithm: Any) -> None:
        batch = random_batch()
        nothing = torch.zeros_like(batch.action_mask)
        empty = replace(
            batch,
            action_mask=nothing,
            turn_index=torch.full_like(batch.turn_index, -1),
            token_weight=torch.zeros_like(batch.token_weight),
            action_tokens=0.0,
            sequences=0.0,
            total_weight=0.0,
            turns=0.0,
        )
        loss = _loss(algorithm, prepared(algorithm, empty), moved(batch))
        assert float(loss.total.detach()) == 0.0

    def test_observing_leaves_the_old_state_alone(self, algorithm: Any) -> None:
        state = {"kl_coefficient": 0.1}
        metrics = {"loss/kl": 0.5, "rollout/trajectories": 8.0}
        assert algorithm.observe(state, metrics) == algorithm.observe(state, metrics)
        assert state == {"kl_coefficient": 0.1}


def _same(actual: Any, expected: Any) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-9)


def _loss(algorithm: Algorithm, batch: Batch, outputs: Outputs) -> Loss:
    return algorithm.loss(outputs, batch)


def _gradient(algorithm: Algorithm, batch: Batch, outputs: Outputs) -> tuple[Tensor, ...]:
    """The loss and its gradient by logp."""
    loss = algorithm.loss(outputs, batch)
    gradient = torch.autograd.grad(loss.total, outputs.logp, allow_unused=True)
    return (loss.total.detach(), *(x for x in gradient if x is not None))
