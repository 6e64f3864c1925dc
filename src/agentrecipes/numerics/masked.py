"""Sums, whitening and packing over action tokens; nothing off the mask matters, NaN included."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch
    from torch import Tensor
else:
    import lazy_loader

    torch = lazy_loader.load("torch")

WHITEN_EPSILON = 1e-8  # verl's, added to the variance


def masked(x: Tensor, mask: Tensor) -> Tensor:
    """`x` where `mask` is True, else 0; unlike ``x * mask`` it also stops NaN and its gradient."""
    return torch.where(mask, x, torch.zeros((), dtype=x.dtype, device=x.device))


def masked_sum(x: Tensor, mask: Tensor) -> Tensor:
    """Σ x over `mask`, a scalar."""
    return masked(x, mask).sum()


def whiten(x: Tensor, mask: Tensor) -> Tensor:
    """(x − μ) · (σ² + 1e-8)^(−½) over `mask`, σ² with n − 1; 0 off it. One token alone gives 0.

    The form of verl's ``masked_whiten``, https://github.com/volcengine/verl.
    """
    count = mask.sum()
    mean = masked_sum(x, mask) / count.clamp(min=1)
    centred = masked(x - mean, mask)
    variance = centred.square().sum() / (count - 1).clamp(min=1)
    return centred * torch.rsqrt(variance + WHITEN_EPSILON)


def trajectory_sum(rows: Tensor, trajectory: Tensor) -> Tensor:
    """(B,) the sum of `rows` (B,) over all rows of the same trajectory, given to each of them."""
    together = trajectory[:, None] == trajectory[None, :]  # (B, B) bool
    return together.to(rows.dtype) @ rows


@dataclass(frozen=True, slots=True)
class Places:
    """Where each action token stands in its trajectory, whose tokens may lie in several rows.

    Example: rows ``[o 7 8]`` and ``[o 9 o]`` of one trajectory, o no action, pack to ``[7 8 9]``.
    """

    action_mask: Tensor  # (B, T) bool
    trajectory: Tensor  # (M,) int64 of each action token, row by row; below `trajectories`
    place: Tensor  # (M,) int64 position in that trajectory, from 0
    trajectories: int  # N
    length: int  # L, action tokens of the longest trajectory

    @classmethod
    def of(cls, action_mask: Tensor, trajectory: Tensor, trajectories: int) -> Places:
        """From the mask (B, T) and each row's trajectory (B,), an index below `trajectories`."""
        counts = action_mask.sum(dim=1)  # (B,)
        together = (trajectory[:, None] == trajectory[None, :]).tril(diagonal=-1)  # (B, B)
        before = (together * counts[None, :]).sum(dim=1)  # (B,) tokens in the rows above
        place = (before[:, None] + action_mask.cumsum(dim=1) - 1)[action_mask]  # (M,)
        owner = trajectory[:, None].expand_as(action_mask)[action_mask]  # (M,)
        length = int(place.max()) + 1 if place.numel() else 0
        return cls(action_mask, owner, place, trajectories, length)

    def pack(self, x: Tensor) -> Tensor:
        """(B, T) → (N, L): each trajectory's action tokens from the left, then 0."""
        packed = torch.zeros(self.trajectories, self.length, dtype=x.dtype, device=x.device)
        packed[self.trajectory, self.place] = x[self.action_mask]
        return packed

    def unpack(self, packed: Tensor) -> Tensor:
        """(N, L) → (B, T), 0 off the action mask."""
        mask = self.action_mask
        x = torch.zeros(mask.shape, dtype=packed.dtype, device=packed.device)
        x[mask] = packed[self.trajectory, self.place]
        return x

    def last(self, turn_index: Tensor, turns: int) -> Tensor:
        """(N, turns) place of the last token in turns 0 to k; −1 where there is none yet.

        So what belongs to a turn without action tokens lands on the token before it.
        """
        counts = torch.zeros(self.trajectories, turns, dtype=torch.int64, device=turn_index.device)
        ones = torch.ones_like(self.place)
        turn = turn_index[self.action_mask].clamp(max=turns - 1)
        counts.index_put_((self.trajectory, turn), ones, accumulate=True)
        return counts.cumsum(dim=1) - 1
