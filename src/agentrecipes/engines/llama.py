"""One token a row through a Llama: its own modules, without transformers' work around them.

At a few hundred thousand parameters that work is most of a step's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from agentrecipes.engines.cache import Layer, Rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def is_plain_llama(model: PreTrainedModel) -> bool:
    """Whether `step` computes what `model` computes: a Llama as published, nothing around it."""
    from transformers import LlamaForCausalLM

    own = ("torch.nn.modules.", "transformers.models.llama.", "transformers.activations")
    return (
        type(model) is LlamaForCausalLM
        and model.config._attn_implementation not in ("eager", "flex_attention")  # other sums
        and all(type(module).__module__.startswith(own) for module in model.modules())
    )


def step(model: Any, rows: Rows, tokens: Tensor, *, positions: Tensor, mask: Tensor) -> Tensor:
    """(n, V) logits after one more token in each of the first n rows; `mask` (n, 1, 1, columns)."""
    decoder = model.model
    hidden = decoder.embed_tokens(tokens)  # (n, D)
    turns = decoder.rotary_emb(hidden, position_ids=positions[:, None])  # cos, sin: (n, 1, d)
    for block, layer in zip(decoder.layers, rows.layers, strict=True):
        normed = block.input_layernorm(hidden)
        hidden = hidden + _attended(block.self_attn, normed, layer, turns=turns, mask=mask)
        hidden = hidden + block.mlp(block.post_attention_layernorm(hidden))
    logits: Tensor = model.lm_head(decoder.norm(hidden))
    return logits


def _attended(
    attention: Any, x: Tensor, layer: Layer, *, turns: tuple[Tensor, Tensor], mask: Tensor
) -> Tensor:
    """(n, D): attention of the new column over all columns of its row."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    n, width = len(x), attention.head_dim
    query = attention.q_proj(x).view(n, -1, 1, width)  # (n, H, 1, d)
    key = attention.k_proj(x).view(n, -1, 1, width)  # (n, h, 1, d)
    query, key = apply_rotary_pos_emb(query, key, *turns)
    keys, values = layer.update(key, attention.v_proj(x).view(n, -1, 1, width))
    out = scaled_dot_product_attention(
        query,
        keys,
        values,
        attn_mask=mask,
        scale=attention.scaling,
        enable_gqa=query.shape[1] != keys.shape[1],
    )  # (n, H, 1, d)
    attended: Tensor = attention.o_proj(out.reshape(n, -1))
    return attended
