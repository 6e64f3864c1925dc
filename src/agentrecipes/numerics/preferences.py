"""Pairs of trajectories: which is preferred in a group, and by how much the policy agrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentrecipes.numerics.masked import masked

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    import lazy_loader

    torch = lazy_loader.load("torch")


def extremes(returns: Tensor, group: Tensor) -> Tensor:
    """(N,) 1 on each group's first best, −1 on its first worst; 0 elsewhere and for equal returns.

    A return that is not finite takes part in nothing.
    """
    sides = torch.zeros_like(returns)
    for number in group.unique():
        own = torch.nonzero((group == number) & torch.isfinite(returns)).flatten()
        if own.numel() == 0:
            continue
        best, worst = own[returns[own].argmax()], own[returns[own].argmin()]
        if returns[best] > returns[worst]:
            sides[best], sides[worst] = 1.0, -1.0
    return sides


def margins(
    log_ratio: Tensor, sides: Tensor, *, mask: Tensor, group: Tensor
) -> tuple[Tensor, Tensor]:
    """(G,) Σ log_ratio of the preferred minus that of the other, by group, and (G,) its weight.

    `log_ratio`, `sides` and `mask` are (B, T), `group` (B,); the weight is the size of `sides` on
    the group's tokens, 0 for a group without a pair. Both of a pair must stand in one micro-batch.
    """
    side = masked(sides, mask)
    rows = (side.sign() * masked(log_ratio, mask)).sum(dim=1)  # (B,)
    found, local = torch.unique(group, return_inverse=True)
    nothing = rows.new_zeros(found.numel())
    margin = nothing.index_add(0, local, rows)
    heaviest = side.abs().amax(dim=1)  # (B,)
    weight = nothing.scatter_reduce(0, local, heaviest, "amax")
    return margin, weight


def logistic(margin: Tensor) -> Tensor:
    """−log σ(margin), without overflow."""
    return torch.nn.functional.softplus(-margin)
