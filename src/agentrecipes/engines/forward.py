"""The model as the sampler uses it: columns of tokens in, logits of the last column out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from agentrecipes.engines.cache import Ids, Rows
from agentrecipes.engines.llama import Llama, is_plain_llama
from agentrecipes.errors import EngineError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

CHUNK_TOKENS = 16384  # tokens of one forward pass over prompts, padding included
CHUNK_SCORES = 2**21  # pairs of tokens by head that are scored at once where prompts are shared


class Network:
    """A causal language model behind the two calls that sampling needs."""

    def __init__(self, model: PreTrainedModel) -> None:
        config: Any = model.config.get_text_config()
        kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
        if kinds != {"full_attention"} or "flash" in str(config._attn_implementation):
            raise EngineError(
                f"native engine: the model's attention is {config._attn_implementation!r} with "
                f"{', '.join(sorted(kinds))}. Use full attention and sdpa, or the vllm engine."
            )
        self._model = model
        self._llama = Llama(model) if is_plain_llama(model) else None
        self._additive = config._attn_implementation == "eager"  # eager adds its mask
        self.layers = int(config.num_hidden_layers)
        self.vocabulary = len(model.get_input_embeddings().weight)  # type: ignore[arg-type]
        self.longest = int(getattr(config, "max_position_embeddings", 2**31))
        self.device = model.device

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """The model in evaluation mode, and as it was afterwards."""
        training = self._model.training
        if self._llama:
            self._llama.look_up()
        if training:
            self._model.train(False)
        try:
            yield
        finally:
            if training:
                self._model.train()

    def load(self, weights: Iterable[tuple[str, Tensor]]) -> None:
        """Copy `weights` by name; a tensor that shares the model's storage is left alone."""
        model: Any = self._model
        plain = model.get_base_model() if hasattr(model, "get_base_model") else model
        own = {
            name.replace(".base_layer", ""): tensor  # a layer that an adapter stands beside
            for name, tensor in plain.state_dict(keep_vars=True).items()
            if "lora_" not in name
        }
        with torch.no_grad():
            for name, tensor in weights:
                target = own.get(name)
                if getattr(target, "quant_state", None) is not None:
                    continue  # four bits never change: what is trained stands beside them
                if target is None or target.shape != tensor.shape:
                    found = "no such tensor" if target is None else f"{tuple(target.shape)} here"
                    raise EngineError(
                        f"native engine: weight {name!r} {tuple(tensor.shape)}: {found}. "
                        f"Load the weights of the same model."
                    )
                if target.data_ptr() != tensor.data_ptr():
                    target.copy_(tensor)

    def prefill(self, rows: Rows, news: Sequence[Ids], *, starts: Sequence[int]) -> Tensor:
        """Append each row's new ids, left-padded to one width; logits (R, V) float32 after them.

        ``starts[i]`` is the position of row i's first new id.
        """
        width = max(len(ids) for ids in news)
        padded = torch.tensor([[0] * (width - len(ids)) + list(ids) for ids in news])
        sizes = torch.tensor([len(ids) for ids in news])
        column = torch.arange(width)
        real = column >= (width - sizes)[:, None]  # (R, width)
        shift = torch.tensor(starts) - (width - sizes)
        positions = (column + shift[:, None]).clamp(min=0)
        tokens, real, positions = (t.to(self.device) for t in (padded, real, positions))
        rows.valid = rows.valid.to(self.device)
        base, step = rows.used, max(1, CHUNK_TOKENS // len(news))
        if rows.shared:  # the scores of every new token with every column are in memory
            columns = rows.shared.prompts.used + base + width
            step = max(1, min(step, CHUNK_SCORES // (len(news) * columns)))
        rows.valid[:, base : base + width] = real
        logits = torch.empty(0)
        for start in range(0, width, step):
            part = slice(start, min(start + step, width))
            mask = attended(rows.valid, base + part.start, base + part.stop)
            logits = self._forward(rows, tokens[:, part], positions=positions[:, part], mask=mask)
        return logits

    @property
    def shares(self) -> bool:
        """Whether rows may share a prompt, in float32."""
        return self._llama is not None

    def step(self, rows: Rows, tokens: Tensor, *, positions: Tensor) -> Tensor:
        """Append one token to each live row, (n,); logits (n, V) float32."""
        seen = rows.valid[: len(tokens), None, : rows.used + 1]
        if self._llama:
            logits = self._llama.forward(
                rows, tokens[:, None], positions=positions[:, None], own=seen
            )
            return logits.float()
        mask = seen[:, None]
        return self._forward(rows, tokens[:, None], positions=positions[:, None], mask=mask)

    def _forward(self, rows: Rows, tokens: Tensor, *, positions: Tensor, mask: Tensor) -> Tensor:
        if self._llama and rows.shared:
            return self._llama.forward(rows, tokens, positions=positions, own=mask[:, 0]).float()
        if self._additive:
            lowest = torch.finfo(self._model.dtype).min
            mask = torch.zeros_like(mask, dtype=self._model.dtype).masked_fill(~mask, lowest)
        output = self._model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=rows.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = output.logits[:, -1]
        return logits.float()


def attended(valid: Tensor, start: int, stop: int) -> Tensor:
    """(R, 1, stop - start, stop) bool: what columns `start` to `stop` attend to.

    A padding column attends to itself, so that no softmax is over nothing: NaN would reach others.
    """
    query = torch.arange(start, stop, device=valid.device)[:, None]
    key = torch.arange(stop, device=valid.device)
    seen = valid[:, None, :stop] & (key <= query)
    return (seen | (key == query))[:, None]
