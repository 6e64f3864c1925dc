"""From a number per token to the loss: what a mean is a mean of.

The denominators are those of the whole optimizer step, handed in: a micro-batch gives its share,
and the shares of all micro-batches and ranks add up to the mean. Where a denominator is 0 there is
nothing to add, and the share is 0. The rows of one trajectory must stand in one micro-batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from agentrecipes.numerics.masked import masked, masked_sum, trajectory_sum

if TYPE_CHECKING:
    from torch import Tensor

Aggregation = Literal["token_mean", "sequence_mean", "sequence_sum_norm"]


def token_mean(x: Tensor, action_mask: Tensor, *, action_tokens: float) -> Tensor:
    """(1/M) Σ_i Σ_t x_{i,t} over the step's M action tokens.

    Yu et al. 2025, eq. 8, https://arxiv.org/abs/2503.14476; there M counts one group.
    """
    return masked_sum(x, action_mask) / (action_tokens or 1.0)


def sequence_mean(
    x: Tensor, action_mask: Tensor, trajectory: Tensor, *, sequences: float
) -> Tensor:
    """(1/N) Σ_i (1/|y_i|) Σ_t x_{i,t} over the step's N trajectories, |y_i| action tokens each.

    A trajectory that forked counts once: its tokens over all its rows. Shao et al. 2024, eq. 3,
    https://arxiv.org/abs/2402.03300.
    """
    sums = masked(x, action_mask).sum(dim=1)  # (B,)
    tokens = trajectory_sum(action_mask.sum(dim=1).to(sums.dtype), trajectory)  # (B,)
    return (sums / tokens.clamp(min=1)).sum() / (sequences or 1.0)


def sequence_sum_norm(
    x: Tensor, action_mask: Tensor, *, sequences: float, max_tokens: float
) -> Tensor:
    """(1/N) Σ_i (1/L) Σ_t x_{i,t}, L the constant `max_tokens`: long answers are not favoured.

    Liu et al. 2025, section 3.2, https://arxiv.org/abs/2503.20783.
    """
    return masked_sum(x, action_mask) / ((sequences or 1.0) * max_tokens)
