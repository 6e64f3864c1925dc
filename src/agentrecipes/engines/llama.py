"""New tokens through a Llama: its own weights, without transformers' work around them.

At a few million parameters that work is most of a step's time. Only a row's own columns are its
own: what a group's prompt says is kept, and read, once for the group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from agentrecipes.engines.attention import Sight, attend
from agentrecipes.engines.cache import Layer, Rows

if TYPE_CHECKING:
    from transformers import PreTrainedModel

TABLE = 1024  # positions whose rotations are looked up at once
FIXED = ("default", "linear", "llama3")  # rotations that do not depend on a row's length


def is_plain_llama(model: PreTrainedModel) -> bool:
    """Whether `Llama` computes what `model` computes: a Llama as published, nothing around it."""
    from transformers import LlamaForCausalLM

    config: Any = model.config
    own = ("torch.nn.modules.", "transformers.models.llama.", "transformers.activations")
    return (
        type(model) is LlamaForCausalLM
        and model.device.type == "cpu"  # elsewhere its own attention is the fast one
        and config.rope_parameters["rope_type"] in FIXED
        and config._attn_implementation not in ("eager", "flex_attention")  # other sums
        and all(type(module).__module__.startswith(own) for module in model.modules())
    )


Weights = tuple[Tensor, Tensor | None]  # of a linear layer


@dataclass(frozen=True, slots=True)
class Block:
    """A layer's parts, found once: to look them up takes as long as to use them."""

    before: Any  # the norm before attention
    after: Any  # and that before the inner layer
    query: Weights
    key: Weights
    value: Weights
    output: Weights
    gate: Weights
    up: Weights
    down: Weights
    activation: Any
    scale: float

    @classmethod
    def of(cls, block: Any) -> Block:
        """The parts of a layer of transformers' Llama."""
        attention, inner = block.self_attn, block.mlp

        def weights(projection: Any) -> Weights:
            return projection.weight, projection.bias

        return cls(
            before=block.input_layernorm,
            after=block.post_attention_layernorm,
            query=weights(attention.q_proj),
            key=weights(attention.k_proj),
            value=weights(attention.v_proj),
            output=weights(attention.o_proj),
            gate=weights(inner.gate_proj),
            up=weights(inner.up_proj),
            down=weights(inner.down_proj),
            activation=inner.act_fn,
            scale=attention.scaling,
        )


class Llama:
    """A model for which `is_plain_llama` holds; it holds no copy of any weight.

    Keys and values are float32 whatever the weights are, and so are scores and shares.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model: Any = model
        self._turns = torch.empty(2, 0, 0)  # (2, positions, d): cosines and sines
        self.look_up()

    def forward(self, rows: Rows, tokens: Tensor, *, positions: Tensor, own: Tensor) -> Tensor:
        """(n, V) logits after w more tokens in each live row.

        `tokens` and `positions` are (n, w); `own` (n, w, columns) bool: which of its row's own
        columns each new token sees, those of the new tokens included.
        """
        decoder = self._model.model
        hidden = decoder.embed_tokens(tokens.reshape(-1))  # (n w, D)
        turns = self._rotations(positions)
        sight = look(rows, own)
        prompts: Sequence[Layer | None] = [None] * len(rows.layers)
        if rows.shared:
            prompts = rows.shared.layers()
        for block, layer, prompt in zip(self._blocks, rows.layers, prompts, strict=True):
            query = _rotated(block, _normed(block.before, hidden), layer, turns=turns)
            mixed = attend(query, layer, prompt, sight=sight, scale=block.scale)  # (n, H, w, d)
            mixed = mixed.transpose(1, 2).reshape(len(hidden), -1).to(hidden.dtype)
            hidden = _added(hidden, mixed, block.output)
            hidden = _added(hidden, _inner(block, _normed(block.after, hidden)), block.down)
        last = hidden.view(*tokens.shape, -1)[:, -1]
        logits: Tensor = self._model.lm_head(_normed(decoder.norm, last))
        return logits

    def look_up(self) -> None:
        """Find the model's weights; they may have become others since the last time."""
        self._blocks = [Block.of(block) for block in self._model.model.layers]

    def _rotations(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and signed sines for `_rotated`, (n, 1, w, d)."""
        highest = int(positions.max())
        if highest >= self._turns.shape[1]:
            every = torch.arange((highest // TABLE + 1) * TABLE)[None]
            some = self._model.model.embed_tokens.weight[:1]  # its type is the rotations'
            cos, sin = self._model.model.rotary_emb(some, position_ids=every)
            half = sin.shape[-1] // 2
            sin = torch.cat([-sin[..., :half], sin[..., half:]], -1)  # of the other half's numbers
            self._turns = torch.cat([cos, sin])
        cos, sin = self._turns[:, positions][:, :, None]
        return cos, sin


def look(rows: Rows, own: Tensor) -> Sight:
    """What the new columns of the live rows see; `own` as in `Llama.forward`."""
    seen = None if bool(own.all()) else _bias(own)
    if rows.shared is None:
        return Sight(seen)
    seats = rows.shared.seats(rows.live)
    return Sight(seen, rows.shared.bias, seats)


def _bias(seen: Tensor) -> Tensor:
    return torch.zeros(seen.shape).masked_fill_(~seen, float("-inf"))


def _normed(norm: Any, x: Tensor) -> Tensor:
    if x.dtype != torch.float32:  # it rounds in between
        rounded: Tensor = norm(x)
        return rounded
    scale = x.square().mean(-1, keepdim=True).add_(norm.variance_epsilon).rsqrt_()
    return (x * scale).mul_(norm.weight)


def _rotated(block: Block, x: Tensor, layer: Layer, *, turns: tuple[Tensor, Tensor]) -> Tensor:
    """(n, H, w, d) float32 queries of `x` (n w, D), whose keys and values go into `layer`."""
    cos, sin = turns
    n, _, w, d = cos.shape
    both = torch.cat([linear(x, *block.query), linear(x, *block.key)], -1)
    both = both.view(n, w, -1, d).transpose(1, 2)  # (n, H + h, w, d)
    both = (both * cos).addcmul_(both.roll(d // 2, -1), sin)
    values = linear(x, *block.value).view(n, w, -1, d).transpose(1, 2)
    heads = both.shape[1] - values.shape[1]
    layer.append(both[:, heads:], values)
    return both[:, :heads].float()


def _added(hidden: Tensor, x: Tensor, weights: Weights) -> Tensor:
    """`hidden` plus what a linear layer makes of `x`."""
    weight, bias = weights
    return torch.addmm(hidden if bias is None else hidden + bias, x, weight.t())


def _inner(block: Block, x: Tensor) -> Tensor:
    gate: Tensor = block.activation(linear(x, *block.gate))
    return gate.mul_(linear(x, *block.up))
