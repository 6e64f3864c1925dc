"""Turns as the steps of a decision process: one value, one reward and one advantage for each.

A step is a turn with at least one action token; turns without any have passed their rewards on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentrecipes.algorithms import composition, credit, fields
from agentrecipes.algorithms.protocol import Loss, Outputs
from agentrecipes.numerics import advantages
from agentrecipes.numerics.masked import Places, masked, whiten

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from agentrecipes.records import Batch
else:
    import lazy_loader

    torch = lazy_loader.load("torch")


def openings(action_mask: Tensor, turn_index: Tensor) -> Tensor:
    """(B, T) bool: the first action token of each turn, where the turn's value is read.

    A turn's action tokens stand in one row, and turns ascend along it.
    """
    before = torch.nn.functional.pad(masked(turn_index + 1, action_mask), (1, 0))[:, :-1]
    return action_mask & (turn_index >= before.cummax(dim=1).values)


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of a batch's trajectories, K at most; (N, K) packed from the left."""

    tokens: Places
    opening: Places  # of the first action token of each step
    step: Tensor  # (N, L) int64 step of each packed action token

    @classmethod
    def of(cls, batch: Batch) -> Steps:
        first = openings(batch.action_mask, batch.turn_index)  # (B, T)
        tokens = credit.places(batch)
        opening = Places.of(first, batch.trajectory, tokens.trajectories)
        step = tokens.pack(first.long()).cumsum(dim=1) - 1  # (N, L)
        return cls(tokens, opening, step.clamp(min=0))

    @property
    def taken(self) -> Tensor:
        """(N, K) bool: the trajectory has that step."""
        return self.opening.pack(self.opening.action_mask)

    def rewards(self, batch: Batch, kl: fields.Kl) -> Tensor:
        """(N, K) float64 what the tokens of a step got, KL penalty included."""
        by_token = credit.token_rewards(batch, self.tokens, kl)  # (N, L)
        shape = (by_token.shape[0], self.opening.length)
        empty = torch.zeros(shape, dtype=by_token.dtype, device=by_token.device)
        return empty.scatter_add(1, self.step, by_token)

    def spread(self, by_step: Tensor) -> Tensor:
        """(N, K) → (B, T): each step's number on its action tokens."""
        if not self.opening.length:
            return self.tokens.unpack(by_step)
        return self.tokens.unpack(by_step.gather(1, self.step))


class Stepwise(composition.Valued, composition.Clipped, Protocol):
    """The fields of PPO over steps."""

    @property
    def gamma(self) -> float: ...
    @property
    def lam(self) -> float: ...
    @property
    def whiten(self) -> bool: ...


def step_advantages(part: Stepwise, batch: Batch) -> Tensor:
    """(B, T) GAE over steps on each step's action tokens; whitened over steps if `whiten`."""
    steps = Steps.of(batch)
    by_step, _ = _estimate(part, batch, steps)
    if part.whiten:
        by_step = whiten(by_step, steps.taken & credit.finite(batch)[:, None])
    return steps.spread(by_step).to(batch.logp_old.dtype)


def step_targets(part: Stepwise, batch: Batch) -> Tensor:
    """(B, T) A + V_old of each step on its first action token, 0 elsewhere."""
    steps = Steps.of(batch)
    by_step, values = _estimate(part, batch, steps)
    return steps.opening.unpack(by_step + values).to(batch.values_old.dtype)


def step_loss(part: Stepwise, outputs: Outputs, batch: Batch) -> Loss:
    """Clipped surrogate by token, value loss a mean over the step's turns, KL, entropy.

    Raises:
        ValueError: the batch does not say how many turns the optimizer step has.
    """
    first = openings(batch.action_mask, batch.turn_index)
    if not batch.turns and bool(first.any()):
        raise ValueError("batch.turns: 0, but there are action tokens. Count the step's turns.")
    error = composition.value_error(part, outputs, batch=batch, where=first)
    loss = composition.clipped_loss(part, outputs, batch)
    return composition.with_value(part, loss, error.sum() / (batch.turns or 1.0))


def _estimate(part: Stepwise, batch: Batch, steps: Steps) -> tuple[Tensor, Tensor]:
    """(N, K) GAE over steps, and the values that it started from."""
    rewards = steps.rewards(batch, part.kl)
    values = steps.opening.pack(batch.values_old.double())  # V of the state before the action
    estimate = advantages.gae(rewards, values, gamma=part.gamma, lam=part.lam)
    return masked(estimate, credit.finite(batch)[:, None]), values
