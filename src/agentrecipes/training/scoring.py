"""Log-probabilities from hidden states, within a bound on the memory that logits take."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import cross_entropy
from torch.utils.checkpoint import checkpoint

from agentrecipes.training import llama

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.algorithms.protocol import Outputs
    from agentrecipes.training.pack import Strip

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
    zero: Tensor = sum((own.sum() for own in outputs.own.values()), outputs.logp.sum()) * 0.0
    return zero if outputs.value is None else zero + outputs.value.sum() * 0.0


def causal(model: Any) -> Any:
    """The Hugging Face causal language model inside an adapter's wrapper, or `model` itself."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def hidden(model: Any, strip: Strip) -> Tensor:
    """(M, D) hidden states at the scored positions."""
    if llama.is_plain(model):
        return llama.hidden(model, strip)[strip.scored]
    states: Tensor = (
        causal(model)
        .get_decoder()(
            input_ids=strip.ids,
            position_ids=strip.positions,
            use_cache=False,
            segments=strip.segments,
        )
        .last_hidden_state[0]
    )  # (N, D)
    return states[strip.scored]
