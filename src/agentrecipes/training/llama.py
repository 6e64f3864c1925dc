"""A strip through a plain Llama: its own weights, fewer passes over memory than its own modules.

transformers' norm, rotation and gate are chains of small operations that each keep a tensor for
the backward pass. Here each of them is one, with its gradient written down.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn.functional import silu

from agentrecipes.engines.llama import is_plain_llama

if TYPE_CHECKING:
    from torch import Tensor

    from agentrecipes.training.pack import Strip


def is_plain(model: Any) -> bool:
    """Whether `hidden` computes what `model` computes: a plain Llama that nobody hooks into."""
    if not is_plain_llama(model) or model.config.hidden_act != "silu":
        return False
    if model.training and (model.is_gradient_checkpointing or model.config.attention_dropout):
        return False
    return not any(
        own._forward_hooks or own._forward_pre_hooks or own._backward_hooks
        for own in model.modules()
    )


def hidden(model: Any, strip: Strip) -> Tensor:
    """(N, D) last hidden states of a strip, after the final norm."""
    decoder = model.model
    x = decoder.embed_tokens(strip.ids[0])  # (N, D)
    cos, sin = (turn[0] for turn in decoder.rotary_emb(x[None], strip.positions))  # (N, d) each
    half = cos.shape[-1] // 2
    turns = [turn[:, None, :half] for turn in (cos, sin)]  # both halves of a head turn alike
    for block in decoder.layers:
        x = x + _attended(block.self_attn, _norm(block.input_layernorm, x), strip, turns=turns)
        normed, mlp = _norm(block.post_attention_layernorm, x), block.mlp
        x = x + mlp.down_proj(_Gated.apply(mlp.gate_proj(normed), mlp.up_proj(normed)))  # type: ignore[no-untyped-call]
    return _norm(decoder.norm, x)


def _attended(attention: Any, x: Tensor, strip: Strip, *, turns: list[Tensor]) -> Tensor:
    """(N, D): attention of every token over its path."""
    query, key, value = (
        layer(x).view(len(x), -1, attention.head_dim)
        for layer in (attention.q_proj, attention.k_proj, attention.v_proj)
    )  # (N, H, d), (N, h, d)
    cos, sin = (turn.to(query.dtype) for turn in turns)
    states = (_Turned.apply(query, cos, sin), _Turned.apply(key, cos, sin), value)  # type: ignore[no-untyped-call]
    found = strip.segments.attended(states, scale=attention.scaling)
    attended: Tensor = attention.o_proj(found.flatten(1))
    return attended


def _norm(module: Any, x: Tensor) -> Tensor:
    """The module's RMS norm of x (N, D)."""
    normed: Tensor = _Norm.apply(x, module.weight, module.variance_epsilon)  # type: ignore[no-untyped-call]
    return normed


class _Norm(torch.autograd.Function):
    """w · x / √(mean(x²) + ε), in float32 at least: Zhang & Sennrich 2019, arXiv 1910.07467."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        x, weight, epsilon = arguments
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        norm = torch.linalg.vector_norm(wide, dim=-1, keepdim=True)  # (N, 1)
        scale = (norm.square() / x.shape[-1] + epsilon).rsqrt()
        ctx.save_for_backward(x, weight, scale)
        unit = wide * scale
        made: Tensor = (
            unit.mul_(weight) if unit.dtype == weight.dtype else weight * unit.to(x.dtype)
        )
        return made

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Any, ...]:
        x, weight, scale = ctx.saved_tensors
        unit = x * scale  # wide
        by_weight = torch.linalg.vecdot(above.to(unit.dtype), unit, dim=0)
        weighed = above * weight
        along = torch.linalg.vecdot(weighed.to(unit.dtype), unit, dim=-1)[:, None]  # (N, 1)
        gradient = torch.addcmul(weighed.to(unit.dtype), unit, along, value=-1.0 / x.shape[-1])
        return gradient.mul_(scale).to(x.dtype), by_weight.to(weight.dtype), None


class _Turned(torch.autograd.Function):
    """Heads (N, H, d) turned by their token's angles, half against half.

    Su et al. 2021, arXiv 2104.09864, in the layout of transformers. Gradients turn back.
    """

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        x, cos, sin = arguments
        ctx.save_for_backward(cos, sin)
        return _turned(x, cos, sin)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Any, ...]:
        cos, sin = ctx.saved_tensors
        return _turned(above, cos, -sin), None, None


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    out = torch.empty_like(x)
    half = x.shape[-1] // 2
    first, second = x[..., :half], x[..., half:]
    torch.mul(first, cos, out=out[..., :half]).addcmul_(second, sin, value=-1.0)
    torch.mul(second, cos, out=out[..., half:]).addcmul_(first, sin)
    return out


class _Gated(torch.autograd.Function):
    """silu(gate) · up: Shazeer 2020, arXiv 2002.05202."""

    @staticmethod
    def forward(ctx: Any, *arguments: Tensor) -> Tensor:
        gate, up = arguments
        ctx.save_for_backward(gate, up)
        return silu(gate).mul_(up)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, above: Tensor) -> tuple[Tensor, Tensor]:
        gate, up = ctx.saved_tensors
        by_up = silu(gate).mul_(above)
        return torch.ops.aten.silu_backward(above * up, gate), by_up
