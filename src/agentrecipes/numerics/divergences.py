"""Estimators of KL(π ‖ π_ref) from the log-probabilities of sampled tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from agentrecipes.numerics.masked import masked

if TYPE_CHECKING:
    from torch import Tensor

Estimator = Literal["k1", "k2", "k3"]

LOG_RATIO_LIMIT = 20.0  # so that k3's exp stays finite in float32, as in verl


def kl(logp: Tensor, logp_ref: Tensor, action_mask: Tensor, *, estimator: Estimator) -> Tensor:
    """(B, T) nats, 0 off the mask; with d = log π − log π_ref, within ±20:

    k1 = d, k2 = d²/2, k3 = exp(−d) + d − 1. k1 and k3 have the KL as their mean, k2 and k3 are
    never negative. As a loss, k2 has the gradient of the KL; the mean gradient of k1 is 0. Schulman
    2020, http://joschu.net/blog/kl-approx.html.
    """
    d = masked(logp - logp_ref, action_mask).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    if estimator == "k1":
        return d
    if estimator == "k2":
        return 0.5 * d.square()
    return (-d).expm1() + d  # exp(−d) − 1 without cancellation, so that it is never below 0


def adapted(
    coefficient: float, *, measured: float, target: float, trajectories: float, horizon: float
) -> float:
    """β · (1 + clip(KL/target − 1, ±0.2) · n/horizon), n trajectories after the last change.

    Ziegler et al. 2019, section 2.2, https://arxiv.org/abs/1909.08593, scaled as in verl.
    """
    error = min(max(measured / target - 1.0, -0.2), 0.2)
    return coefficient * (1.0 + error * trajectories / horizon)
