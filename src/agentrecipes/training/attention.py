"""Attention over a strip: rows laid end to end, each attending to itself alone, without padding.

Linear layers see the strip as it is. Only attention gathers the rows into a (rows, longest) block,
where "causal" is all the mask it takes: what stands behind a row's end is never attended to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import scaled_dot_product_attention

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

NAME = "agentrecipes_segments"


@dataclass(frozen=True, slots=True)
class Segments:
    """Where the rows of a strip of N tokens lie.

    Example: rows of 3 and 2 tokens have ``gather [[0, 1, 2], [3, 4, 0]]``, ``scatter [0 … 4]``.
    """

    gather: Tensor  # (S, L) int64: strip position of token l of row s; any position behind the end
    scatter: Tensor  # (N,) int64: place of a strip position in the flattened block

    @classmethod
    def of(cls, lengths: list[int]) -> Segments:
        """Rows of these lengths, laid end to end."""
        longest = max(lengths)
        sizes = torch.tensor(lengths)
        starts = torch.cumsum(sizes, 0) - sizes  # (S,)
        offsets = torch.arange(longest)  # (L,)
        inside = offsets[None, :] < sizes[:, None]  # (S, L)
        gather = torch.where(inside, starts[:, None] + offsets[None, :], 0)
        return cls(gather, inside.flatten().nonzero()[:, 0])

    def to(self, device: torch.device) -> Segments:
        return Segments(self.gather.to(device), self.scatter.to(device))


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
    """(1, N, H, D): each row's attention over itself."""
    if segments is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward(module, query, *others, **kwargs)
    key, value, _ = others
    rows, longest = segments.gather.shape
    flat = segments.gather.flatten()

    def block(x: Tensor) -> Tensor:  # (1, h, N, D) -> (S, h, L, D)
        picked = x[0].transpose(0, 1).index_select(0, flat)
        return picked.view(rows, longest, *picked.shape[1:]).transpose(1, 2)

    out = scaled_dot_product_attention(
        block(query),
        block(key),
        block(value),
        is_causal=True,
        dropout_p=kwargs.get("dropout", 0.0),
        scale=kwargs.get("scaling"),
        enable_gqa=query.shape[1] != key.shape[1],
    )  # (S, H, L, D)
    joined = out.transpose(1, 2).reshape(rows * longest, out.shape[1], out.shape[3])
    return joined.index_select(0, segments.scatter)[None], None
