"""From rewards to advantages: group statistics over trajectories, and recursions over time.

Group statistics are float64: in float32 the std of equal rewards is rounding noise, and dividing by
it turns ties into signal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    import lazy_loader

    torch = lazy_loader.load("torch")

Std = Literal["sample", "population", "none"]


def group_mean(values: Tensor, group: Tensor) -> Tensor:
    """(N,) μ of each one's group."""
    _, member, counts = torch.unique(group, return_inverse=True, return_counts=True)
    sums = torch.zeros(counts.shape, dtype=values.dtype, device=values.device)
    mean: Tensor = sums.index_add(0, member, values) / counts
    return mean[member]


def group_std(values: Tensor, group: Tensor, *, std: Std = "sample") -> Tensor:
    """(N,) σ of each one's group: ``sample`` divides by n − 1, ``population`` by n."""
    size = group_size(group)
    variance = group_mean((values - group_mean(values, group)).square(), group)
    if std == "sample":
        variance = variance * size / (size - 1).clamp(min=1)
    return variance.sqrt()


def group_size(group: Tensor) -> Tensor:
    """(N,) how many are in each one's group."""
    counts: Tensor
    _, member, counts = torch.unique(group, return_inverse=True, return_counts=True)
    return counts[member]


def has_signal(values: Tensor, group: Tensor) -> Tensor:
    """(N,) bool: finite, in a group with at least two different finite values."""
    finite = torch.isfinite(values)
    _, member = torch.unique(group, return_inverse=True)
    groups = torch.zeros_like(values)  # one place a group, at most N
    known, places = values[finite], member[finite]
    low = groups.scatter_reduce(0, places, known, "amin", include_self=False)
    high = groups.scatter_reduce(0, places, known, "amax", include_self=False)
    return finite & (high > low)[member]


def group_advantages(
    returns: Tensor, group: Tensor, *, std: Std = "sample", epsilon: float = 1e-6
) -> Tensor:
    """(N,) A_i = (R_i − μ_g) / (σ_g + ε), or R_i − μ_g with std ``none``.

    A group of equal returns, or of one trajectory, has exactly 0. A return that is not finite is
    left out of its group and has 0. Shao et al. 2024, section 4.1.2, https://arxiv.org/abs/2402.03300;
    without σ: Liu et al. 2025, https://arxiv.org/abs/2503.20783.
    """
    finite = torch.isfinite(returns)
    value, member = returns[finite].double(), group[finite]
    centred = value - group_mean(value, member)
    scaled = centred if std == "none" else centred / (group_std(value, member, std=std) + epsilon)
    return _scatter(torch.where(has_signal(value, member), scaled, 0.0), finite)


def leave_one_out(returns: Tensor, group: Tensor) -> Tensor:
    """(N,) A_i = R_i − mean of the others in the group = n/(n − 1) · (R_i − μ_g).

    Equal returns, one trajectory alone, and returns that are not finite have 0. Ahmadian et al.
    2024, https://arxiv.org/abs/2402.14740.
    """
    finite = torch.isfinite(returns)
    value, member = returns[finite].double(), group[finite]
    size = group_size(member)
    scaled = (value - group_mean(value, member)) * size / (size - 1).clamp(min=1)
    return _scatter(torch.where(has_signal(value, member), scaled, 0.0), finite)


def gae(rewards: Tensor, values: Tensor, *, gamma: float, lam: float) -> Tensor:
    """(N, L) A_t = δ_t + γλ·A_{t+1}, δ_t = r_t + γ·V_{t+1} − V_t, and V is 0 after the end.

    Time runs along the packed axis; a shorter trajectory has rewards and values 0 behind its end.
    Schulman et al. 2015, eq. 16, https://arxiv.org/abs/1506.02438.
    """
    following = torch.nn.functional.pad(values, (0, 1))[:, 1:]  # (N, L) V_{t+1}
    return discounted(rewards + gamma * following - values, gamma * lam)


def discounted(rewards: Tensor, gamma: float) -> Tensor:
    """(N, L) G_t = r_t + γ·G_{t+1}, the return from t on; Sutton and Barto 2018, eq. 3.9."""
    result = torch.zeros_like(rewards)
    after = torch.zeros(rewards.shape[0], dtype=rewards.dtype, device=rewards.device)  # (N,)
    for t in reversed(range(rewards.shape[1])):
        after = rewards[:, t] + gamma * after
        result[:, t] = after
    return result


def _scatter(values: Tensor, where: Tensor) -> Tensor:
    result = torch.zeros(where.shape, dtype=torch.float64, device=values.device)
    result[where] = values
    return result
