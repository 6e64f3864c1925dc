"""Log-probabilities from hidden states, within a bound on the memory that logits take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.algorithms.protocol import Outputs

LOGIT_BYTES = 2**30  # above this the head runs in chunks, recomputed in the backward pass


def scores(
    head: Any, hidden: Tensor, targets: Tensor, *, temperature: float, entropy: bool
) -> tuple[Tensor, Tensor | None]:
    """(M,) log-probabilities of `targets` and entropies, in float32, from (M, D) hidden states."""

    def piece(states: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        logits = head(states).float()  # (m, V)
        if temperature != 1.0:
            logits = logits / temperature
        logp = -cross_entropy(logits, ids, reduction="none")
        if not entropy:
            return logp, logp.detach()
        norm = torch.logsumexp(logits, dim=-1)
        return logp, norm - (logits.softmax(-1) * logits).sum(-1)

    width = int(head.out_features)  # its weight may be in pieces
    rows = max(1, LOGIT_BYTES // (width * 4 * 3))  # logits, their softmax and its gradient
    if len(targets) <= rows:
        logp, ent = piece(hidden, targets)
        return logp, ent if entropy else None
    parts = [
        checkpoint(piece, states, ids, use_reentrant=False)
        for states, ids in zip(hidden.split(rows), targets.split(rows), strict=True)
    ]
    logp, ent = (torch.cat(each) for each in zip(*parts, strict=True))
    return logp, ent if entropy else None


def nothing(outputs: Outputs) -> Tensor:
    """Zero, through every weight that the other ranks' losses go through."""
    zero: Tensor = outputs.logp.sum() * 0.0
    return zero if outputs.value is None else zero + outputs.value.sum() * 0.0
