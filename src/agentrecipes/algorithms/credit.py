"""Which rewards a batch's trajectories and tokens have, in float64."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from agentrecipes.algorithms.fields import Kl
from agentrecipes.numerics import advantages, divergences
from agentrecipes.numerics.masked import Places, masked, whiten

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from agentrecipes.records import Batch
else:
    import lazy_loader

    torch = lazy_loader.load("torch")


class Grouped(Protocol):
    """The fields of a group-relative advantage."""

    @property
    def std(self) -> advantages.Std: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def kl(self) -> Kl: ...


class Returning(Protocol):
    """The fields of a discounted return."""

    @property
    def gamma(self) -> float: ...
    @property
    def whiten(self) -> bool: ...
    @property
    def kl(self) -> Kl: ...


def places(batch: Batch) -> Places:
    """Where the action tokens stand in their trajectories."""
    return Places.of(batch.action_mask, batch.trajectory, batch.returns.shape[0])


def finite(batch: Batch) -> Tensor:
    """(N,) bool: trajectories whose return is a number; the others teach nothing."""
    return torch.isfinite(batch.returns)


def trusted(batch: Batch) -> Tensor:
    """(B, T) bool: action tokens of trajectories whose return is a number."""
    return batch.action_mask & finite(batch)[batch.trajectory][:, None]


def spread(values: Tensor, batch: Batch) -> Tensor:
    """(B, T): each trajectory's advantage (N,) on its action tokens, in the type of logp_old."""
    return on_tokens(values, batch).to(batch.logp_old.dtype)


def on_tokens(values: Tensor, batch: Batch) -> Tensor:
    """(B, T): each trajectory's value (N,) on its action tokens, in its own type."""
    rows = values[batch.trajectory][:, None]  # (B, 1)
    return masked(rows.expand(batch.action_mask.shape), batch.action_mask)


def penalty(batch: Batch, kl: Kl) -> Tensor:
    """(B, T) float64: what the KL term takes off each token's reward."""
    if kl.place != "reward":
        return torch.zeros_like(batch.logp_old, dtype=torch.float64)
    divergence = divergences.kl(
        batch.logp_old.double(), batch.logp_ref.double(), batch.action_mask, estimator=kl.kind
    )
    return batch.kl_coefficient * divergence


def penalised_returns(batch: Batch, kl: Kl) -> Tensor:
    """(N,) float64: the returns less the KL penalty over each trajectory's tokens."""
    returns = batch.returns.double()
    return returns.index_add(0, batch.trajectory, -penalty(batch, kl).sum(dim=1))


def group_relative(part: Grouped, batch: Batch) -> Tensor:
    """(B, T) GRPO's advantage: each trajectory's return, less the KL penalty, against its group."""
    if getattr(part, "normalise", "total") == "parts":
        relative, told = relative_parts(part, batch)
        where = trusted(batch) & told[batch.trajectory][:, None]
        return whiten(on_tokens(relative, batch), where).to(batch.logp_old.dtype)
    return spread(relative_returns(part, batch), batch)


def relative_parts(part: Grouped, batch: Batch) -> tuple[Tensor, Tensor]:
    """(N,) float64 Σ_k w_k · A(r_k), every reward against its group; (N,) bool where one differs.

    GDPO, Liu et al. 2026, https://arxiv.org/abs/2601.05242. A sum that is normalised as one gives a
    reward the say that its spread has in the group; here each has the say of its weight. A reward
    that all of a group share gives 0 and leaves the others alone. The sum is whitened over the
    batch's tokens; other than in verl, those of groups that are alike in every reward stay at 0.
    """
    summed = torch.zeros_like(batch.returns, dtype=torch.float64)
    known, told = finite(batch), torch.zeros_like(batch.returns, dtype=torch.bool)
    for column, weight in zip(batch.part_returns.T, batch.part_weights, strict=True):
        values = torch.where(known, column.double(), torch.nan)
        relative = advantages.group_advantages(
            values, batch.group, std=part.std, epsilon=part.epsilon
        )
        summed = summed + weight * relative
        told = told | advantages.has_signal(values, batch.group)
    return summed, told


def relative_returns(part: Grouped, batch: Batch) -> Tensor:
    """(N,) float64: each trajectory's return, less the KL penalty, against its group."""
    returns = penalised_returns(batch, part.kl)
    return advantages.group_advantages(returns, batch.group, std=part.std, epsilon=part.epsilon)


def reward_to_go(part: Returning, batch: Batch) -> Tensor:
    """(B, T) the discounted rewards from each action token on, whitened if the part says so."""
    at = places(batch)
    packed = advantages.discounted(token_rewards(batch, at, part.kl), part.gamma)  # (N, L)
    tokens = masked(at.unpack(packed), trusted(batch))
    if part.whiten:
        tokens = whiten(tokens, trusted(batch))
    return tokens.to(batch.logp_old.dtype)


def token_rewards(batch: Batch, at: Places, kl: Kl) -> Tensor:
    """(N, L) float64, packed: a turn's reward on the turn's last action token, less the KL penalty.

    Without turn rewards the return is on the trajectory's last action token. A turn without action
    tokens gives its reward to the token before it, or else to the first. Not finite: no reward.
    """
    rewards = -at.pack(penalty(batch, kl))  # (N, L)
    by_turn, turn_index = turn_rewards(batch)  # (N, K), (B, T)
    place = at.last(turn_index, by_turn.shape[1])  # (N, K)
    known = (place[:, -1:] >= 0) & finite(batch)[:, None] & torch.ones_like(place, dtype=torch.bool)
    trajectory = torch.arange(by_turn.shape[0], device=place.device)[:, None].expand_as(place)
    where = (trajectory[known], place[known].clamp(min=0))
    return rewards.index_put(where, by_turn[known], accumulate=True)


def turn_rewards(batch: Batch) -> tuple[Tensor, Tensor]:
    """(N, K) float64 rewards by turn, and (B, T) turns; without any, the return is of one turn."""
    if batch.turn_rewards.numel() and bool((batch.turn_rewards != 0).any()):
        return batch.turn_rewards.double(), batch.turn_index
    one_turn = torch.zeros_like(batch.action_mask, dtype=torch.int64)
    return batch.returns.double()[:, None], one_turn


def no_value_targets(part: object, batch: Batch) -> Tensor:
    """Empty, of shape (0,): there is no critic."""
    return batch.logp_old.new_zeros(0)
