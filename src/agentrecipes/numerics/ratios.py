"""How far the policy has moved, and what a surrogate objective makes of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from agentrecipes.numerics.masked import masked, trajectory_sum

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    import lazy_loader

    torch = lazy_loader.load("torch")

LOG_RATIO_LIMIT = 20.0  # verl's; beyond e^±20 a ratio is noise, and its exp would overflow float32

Level = Literal["token", "sequence"]


def log_ratio(logp: Tensor, logp_old: Tensor, action_mask: Tensor) -> Tensor:
    """(B, T) log ρ_t = log π(t) − log π_old(t), within ±20; 0 off the mask."""
    return masked(logp - logp_old, action_mask).clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)


def sequence_log_ratio(log_ratios: Tensor, action_mask: Tensor, trajectory: Tensor) -> Tensor:
    """(B, T) log s = (1/|y|) Σ_t log ρ_t over a trajectory's action tokens, given to each of them.

    The rows of one trajectory must stand in one micro-batch. Zheng et al. 2025, section 4,
    https://arxiv.org/abs/2507.18071.
    """
    total = trajectory_sum(masked(log_ratios, action_mask).sum(dim=1), trajectory)  # (B,)
    count = trajectory_sum(action_mask.sum(dim=1).to(total.dtype), trajectory)  # (B,)
    mean = total / count.clamp(min=1)
    return masked(mean[:, None].expand_as(log_ratios), action_mask)


def importance_weight(
    log_ratios: Tensor, action_mask: Tensor, trajectory: Tensor, *, cap: float, level: Level
) -> Tensor:
    """(B, T) w = min(π_old/π_rollout, cap), without gradient; 0 off the mask.

    `log_ratios` is logp_old − logp_rollout. Level ``sequence`` takes the product over the tokens
    of a trajectory. Where the sampler's log-probability is not finite the token is dropped (w = 0).
    Yao et al. 2025, truncated importance sampling, https://fengyao.notion.site/off-policy-rl.
    """
    known = action_mask & torch.isfinite(log_ratios)
    difference = masked(log_ratios.detach(), known)
    if level == "sequence":
        total = trajectory_sum(difference.sum(dim=1), trajectory)  # (B,)
        difference = total[:, None].expand_as(difference)
    limited = difference.clamp(-LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
    return masked(limited.exp().clamp(max=cap), known)


def clip(ratio: Tensor, clip_low: float | None, clip_high: float | None) -> Tensor:
    """ρ within [1 − clip_low, 1 + clip_high]; null is no bound."""
    if clip_low is None and clip_high is None:
        return ratio
    low = None if clip_low is None else 1.0 - clip_low
    high = None if clip_high is None else 1.0 + clip_high
    return ratio.clamp(low, high)


def clipped_surrogate(
    ratio: Tensor,
    advantage: Tensor,
    *,
    clip_low: float | None,
    clip_high: float | None,
    dual_clip: float | None = None,
) -> Tensor:
    """(B, T) min(ρA, clip(ρ)A), to be maximised; with `dual_clip` at least c·A where A < 0.

    Schulman et al. 2017, eq. 7, https://arxiv.org/abs/1707.06347; dual clip: Ye et al. 2020,
    https://arxiv.org/abs/1912.09729.
    """
    surrogate = torch.minimum(ratio * advantage, clip(ratio, clip_low, clip_high) * advantage)
    if dual_clip is None:
        return surrogate
    floor = torch.maximum(surrogate, dual_clip * advantage)
    return torch.where(advantage < 0, floor, surrogate)


def is_clipped(
    ratio: Tensor, advantage: Tensor, *, clip_low: float | None, clip_high: float | None
) -> Tensor:
    """(B, T) bool: the clip took the token's gradient away."""
    bounded = clip(ratio, clip_low, clip_high)
    return bounded * advantage < ratio * advantage


def soft_gate(
    ratio: Tensor, advantage: Tensor, *, tau_positive: float, tau_negative: float
) -> Tensor:
    """(B, T) f(ρ)·A with f(ρ) = (4/τ)·σ(τ(ρ − 1)), τ by the sign of A; its slope at ρ = 1 is A.

    Gao et al. 2025, https://arxiv.org/abs/2511.20347.
    """
    positive = torch.full_like(ratio, tau_positive)
    tau = torch.where(advantage > 0, positive, torch.full_like(ratio, tau_negative))
    return torch.sigmoid(tau * (ratio - 1.0)) * (4.0 / tau) * advantage
