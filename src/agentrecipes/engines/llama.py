"""New tokens through a Llama: its own weights, without transformers' work around them.

At a few million parameters that work is most of a step's time. Only a row's own columns are its
own: what a group's prompt says is kept, and read, once for the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import linear, rms_norm

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


class Llama:
    """A model for which `is_plain_llama` holds; it holds no copy of any weight.

    Keys and values are float32 whatever the weights are, and so are scores and shares.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._model: Any = model
        self._turns = torch.empty(2, 0, 0)  # (2, positions, d): cosines and sines

    def forward(self, rows: Rows, tokens: Tensor, *, positions: Tensor, own: Tensor) -> Tensor:
        """(n, V) logits after w more tokens in each live row.

        `tokens` and `positions` are (n, w); `own` (n, w, columns) bool: which of its row's own
        columns each new token sees, those of the new tokens included.
        """
        decoder = self._model.model
        hidden = decoder.embed_tokens(tokens.reshape(-1))  # (n w, D)
        cos, sin = self._rotations(positions)
        sight = look(rows, own)
        prompts = rows.shared.layers() if rows.shared else [None] * len(rows.layers)
        for block, layer, prompt in zip(decoder.layers, rows.layers, prompts, strict=True):
            normed = _normed(block.input_layernorm, hidden)
            query = _rotated(block.self_attn, normed, layer, turns=(cos, sin))
            scale = block.self_attn.scaling
            mixed = attend(query, layer.own, prompt, sight=sight, scale=scale)  # (n, H, w, d)
            mixed = mixed.transpose(1, 2).reshape(len(hidden), -1).to(hidden.dtype)
            hidden = _added(hidden, mixed, block.self_attn.o_proj)
            hidden = _through(block.mlp, _normed(block.post_attention_layernorm, hidden), hidden)
        last = hidden.view(*tokens.shape, -1)[:, -1]
        logits: Tensor = self._model.lm_head(_normed(decoder.norm, last))
        return logits

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
    return rms_norm(x, norm.weight.shape, norm.weight, norm.variance_epsilon)


def _rotated(attention: Any, x: Tensor, layer: Layer, *, turns: tuple[Tensor, Tensor]) -> Tensor:
    """(n, H, w, d) float32 queries of `x` (n w, D), whose keys and values go into `layer`."""
    cos, sin = turns
    n, _, w, d = cos.shape

    def heads(projection: Any) -> Tensor:
        found = linear(x, projection.weight, projection.bias)
        return found.view(n, w, -1, d).transpose(1, 2)

    def turned(y: Tensor) -> Tensor:
        return (y * cos).addcmul_(y.roll(d // 2, -1), sin)

    layer.append(turned(heads(attention.k_proj)), heads(attention.v_proj))
    return turned(heads(attention.q_proj)).float()


def _added(hidden: Tensor, x: Tensor, projection: Any) -> Tensor:
    """`hidden` plus what `projection` makes of `x`."""
    if projection.bias is not None:
        hidden = hidden + projection.bias
    return torch.addmm(hidden, x, projection.weight.t())


def _through(mlp: Any, x: Tensor, hidden: Tensor) -> Tensor:
    gate = mlp.act_fn(linear(x, mlp.gate_proj.weight, mlp.gate_proj.bias))
    gate *= linear(x, mlp.up_proj.weight, mlp.up_proj.bias)
    return _added(hidden, gate, mlp.down_proj)
