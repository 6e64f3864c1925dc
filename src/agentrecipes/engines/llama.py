"""One token a row through a Llama, by its own modules but without transformers' work around them.

At a few hundred thousand parameters that work is most of a step's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import linear, scaled_dot_product_attention, silu

from agentrecipes.engines.cache import Layer, Rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def is_plain_llama(model: PreTrainedModel) -> bool:
    """Whether `step` computes what `model` computes: a Llama as published, nothing around it."""
    from transformers import LlamaForCausalLM

    config: Any = model.config
    own = ("torch.nn.modules.", "transformers.models.llama.", "transformers.activations")
    return (
        type(model) is LlamaForCausalLM
        and config.hidden_act == "silu"
        and config._attn_implementation != "eager"
        and all(type(module).__module__.startswith(own) for module in model.modules())
    )


def step(model: Any, rows: Rows, tokens: Tensor, *, positions: Tensor, mask: Tensor) -> Tensor:
    """(n, V) logits after one more token in each of the first n rows; `mask` (n, 1, 1, columns)."""
    decoder = model.model
    hidden = decoder.embed_tokens(tokens)  # (n, D)
    turns = decoder.rotary_emb(hidden, position_ids=positions[:, None])  # cos, sin: (n, 1, d)
    for block, layer in zip(decoder.layers, rows.layers, strict=True):
        normed = _normed(hidden, block.input_layernorm)
        hidden = hidden + _attended(block.self_attn, normed, layer, turns=turns, mask=mask)
        normed, mlp = _normed(hidden, block.post_attention_layernorm), block.mlp
        gate = silu(_linear(normed, mlp.gate_proj))
        hidden = hidden + _linear(gate * _linear(normed, mlp.up_proj), mlp.down_proj)
    logits: Tensor = _linear(_normed(hidden, decoder.norm), model.lm_head)
    return logits


def _linear(x: Tensor, module: Any) -> Tensor:
    return linear(x, module.weight, module.bias)


def _normed(x: Tensor, module: Any) -> Tensor:
    """(n, D) as LlamaRMSNorm: the mean of squares in float32."""
    wide = x.float()
    scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + module.variance_epsilon)
    normed: Tensor = module.weight * (wide * scale).to(x.dtype)
    return normed


def _attended(
    attention: Any, x: Tensor, layer: Layer, *, turns: tuple[Tensor, Tensor], mask: Tensor
) -> Tensor:
    """(n, D): attention of the new column over all columns of its row."""
    n, width = len(x), attention.head_dim
    query = _linear(x, attention.q_proj).view(n, -1, width)  # (n, H, d)
    key = _linear(x, attention.k_proj).view(n, -1, width)  # (n, h, d)
    value = _linear(x, attention.v_proj).view(n, -1, 1, width)
    query, key = _turned(query, *turns), _turned(key, *turns)
    keys, values = layer.update(key[:, :, None], value)
    out = scaled_dot_product_attention(
        query[:, :, None],
        keys,
        values,
        attn_mask=mask,
        scale=attention.scaling,
        enable_gqa=query.shape[1] != keys.shape[1],
    )  # (n, H, 1, d)
    return _linear(out.reshape(n, -1), attention.o_proj)


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(n, H, d) under its position's rotation; halves of a head are the two coordinates."""
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-second, first), dim=-1) * sin
