"""Muon: momentum made orthogonal for the matrices of a network, AdamW for the rest.

Jordan et al. 2024, https://kellerjordan.github.io/posts/muon/; update scale of Liu et al. 2025,
arXiv 2502.16982, with which both kinds of parameter take one learning rate and weight decay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

MOMENTUM = 0.95
QUINTIC = (3.4445, -4.7750, 2.0315)  # of the Newton-Schulz iteration
ITERATIONS = 5
RMS = 0.2  # of an update's entries, about AdamW's


class Muon(torch.optim.AdamW):
    """AdamW whose groups with ``matrices: True`` hold (m, n) weights and follow Muon.

    ``torch.optim.Muon`` with ``adjust_lr_fn="match_rms_adamw"`` computes the same in bfloat16 and
    one matrix after the other. Here matrices of one shape are made orthogonal together, in their
    own precision: on a CPU, for a small network, that is many times faster.
    """

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One update of every parameter that has a gradient; the closure's loss."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        groups = self.param_groups
        self.param_groups = [group for group in groups if not group["matrices"]]
        try:
            super().step()
        finally:
            self.param_groups = groups
        for group in groups:
            if group["matrices"]:
                self._turn(group)
        return loss

    def _turn(self, group: dict[str, Any]) -> None:
        shapes: dict[torch.Size, list[Tensor]] = {}
        for matrix in group["params"]:
            if matrix.grad is not None:
                shapes.setdefault(matrix.shape, []).append(matrix)
        for shape, matrices in shapes.items():
            updates = orthogonal(torch.stack([self._momentum(each) for each in matrices]))
            scale = RMS * max(shape) ** 0.5
            for matrix, update in zip(matrices, updates, strict=True):
                matrix.mul_(1.0 - group["lr"] * group["weight_decay"])
                matrix.add_(update, alpha=-group["lr"] * scale)

    def _momentum(self, matrix: Tensor) -> Tensor:
        """Nesterov's momentum (m, n), after this step's gradient."""
        gradient: Any = matrix.grad
        state = self.state[matrix]
        if not state:
            state["step"] = torch.zeros(())  # AdamW expects one when it loads a state
            state["momentum_buffer"] = torch.zeros_like(matrix)
        state["step"] += 1
        state["momentum_buffer"].lerp_(gradient, 1.0 - MOMENTUM)
        momentum: Tensor = gradient.lerp(state["momentum_buffer"], MOMENTUM)
        return momentum


def orthogonal(matrices: Tensor) -> Tensor:
    """(k, m, n) with singular values near 1 and the same singular vectors, by Newton-Schulz."""
    wide = matrices if matrices.shape[1] <= matrices.shape[2] else matrices.mT
    x = wide / wide.norm(dim=(1, 2), keepdim=True).clamp(min=1e-7)
    a, b, c = QUINTIC
    for _ in range(ITERATIONS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    made: Tensor = x if wide is matrices else x.mT
    return made
