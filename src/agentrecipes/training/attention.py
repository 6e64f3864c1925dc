"""Attention over a strip: nodes of a tree laid end to end, each attending to its own path alone.

Linear layers see the strip as it is. On a CPU attention goes by stretches of the strip, see
`spans`; elsewhere, and with dropout, it gathers nodes of similar size into blocks, see `blocks`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch

from agentrecipes.training.blocks import Blocks
from agentrecipes.training.spans import Spans
from agentrecipes.training.tree import Node

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

NAME = "agentrecipes_segments"
CPU = torch.device("cpu")


@dataclass(frozen=True)
class Segments:
    """The nodes of a strip, laid end to end in their order, and how they attend on a device."""

    nodes: Sequence[Node]
    device: torch.device = CPU

    def to(self, device: torch.device) -> Segments:
        return self if device == self.device else Segments(self.nodes, device)

    @cached_property
    def _spans(self) -> dict[int, Spans]:
        return {}

    def spans(self, width: int) -> Spans:
        """For tokens of `width` numbers, all heads together; a model's layers have one width."""
        if width not in self._spans:
            self._spans[width] = Spans.of(self.nodes, width)
        return self._spans[width]

    @cached_property
    def blocks(self) -> Blocks:
        return Blocks.of(self.nodes).to(self.device)

    def attended(
        self, states: Sequence[Tensor], *, dropout: float = 0.0, scale: float | None = None
    ) -> Tensor:
        """(N, H, D): each token's attention, from (N, h, D) queries, keys and values."""
        if self.device.type == "cpu" and dropout == 0.0:
            width = states[0].shape[1] * states[0].shape[2]
            return self.spans(width).attended(states, scale=scale)
        return self.blocks.attended(states, dropout=dropout, scale=scale)


def install(model: PreTrainedModel) -> None:
    """Let `model` take ``segments=`` in its forward; without it, its attention is plain SDPA.

    Raises:
        ValueError: the architecture does not take its attention from transformers' interface.
    """
    from transformers import AttentionInterface

    if not getattr(model, "_supports_attention_backend", False):
        raise ValueError(
            f"{type(model).__name__} does not take its attention from transformers' "
            f"AttentionInterface, so rows cannot be packed without padding"
        )
    AttentionInterface.register(NAME, _attention)
    model.set_attn_implementation(NAME)


def _attention(
    module: torch.nn.Module,
    query: Tensor,  # (1, H, N, D), or (B, H, T, D) without segments
    *others: Any,  # key and value like the query, and a mask or None
    segments: Segments | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """(1, N, H, D): each token's attention over what stands before it in its rows."""
    if segments is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, *others, **kwargs)
    key, value, _ = others
    states = [x[0].transpose(0, 1) for x in (query, key, value)]  # (N, h, D)
    dropout, scale = kwargs.get("dropout", 0.0), kwargs.get("scaling")
    return segments.attended(states, dropout=dropout, scale=scale)[None], None
