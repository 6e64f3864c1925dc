"""A causal language model from the Hugging Face hub or a folder, with or without an adapter."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import Component, Fields, component
from agentrecipes.errors import MissingExtra, Problem
from agentrecipes.models.loading import locate, missing_quant, read_model, read_tokenizer

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class Lora(Fields):
    """Low-rank adapters beside the frozen weights. Hu et al. 2021, https://arxiv.org/abs/2106.09685."""

    rank: Annotated[int, Field(ge=1)] = 16
    alpha: Annotated[int, Field(ge=1)] = 32  # the update is scaled by alpha / rank
    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    targets: tuple[str, ...] | Literal["all-linear"] = "all-linear"  # names of modules


@component("model")
class HF(Component):
    """Any dense causal language model that transformers knows.

    With `quantize` only the adapter is trained: Dettmers et al. 2023, QLoRA,
    https://arxiv.org/abs/2305.14314. `export --merge` merges it into the weights as they were.
    """

    path: str  # a name of the hub, or a folder; a folder under AGENTRECIPES_MODELS comes first
    revision: str | None = None  # of the hub: a commit, tag or branch
    dtype: Literal["fp32", "bf16"] = "fp32"
    lora: Lora | None = None  # null: all weights are trained
    quantize: Literal["nf4"] | None = None  # the frozen weights beside an adapter, in four bits
    attention: Literal["sdpa", "eager", "flash_attention_2"] = "sdpa"

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A path that can only be a folder must be one; four bits are for an adapter's base."""
        if self.path.startswith(("/", ".", "~")) and not Path(self.path).expanduser().is_dir():
            yield Problem(
                code="missing_file",
                path="path",
                message=f"there is no folder {self.path!r}",
                suggestion="Write a folder that is there, or a name of the hub.",
            )
        if self.quantize is not None and self.lora is None:
            found = "weights of four bits cannot be trained"
            yield Problem("contradiction", "quantize", found, "Add `lora: {rank: 16}`.")
        elif self.quantize is not None and (missing := missing_quant()) is not None:
            needs, _, command = missing.partition(". ")  # a recipe may be checked elsewhere
            yield Problem("missing_extra", "quantize", needs, f"{command}.", severity="warning")

    def require(self) -> None:
        """Nothing, if what the weights need is installed; asked before a run begins.

        Raises:
            MissingExtra: it is not; the message has the command that installs it.
        """
        if self.quantize is not None and (missing := missing_quant()) is not None:
            raise MissingExtra(missing)

    def build(self, seed: int) -> PreTrainedModel:
        """The model on the CPU; `seed` draws the adapter's first weights.

        Raises:
            RecipeError: there is no such model, or its weights are not safetensors.
            MissingExtra: it is to be quantised, and bitsandbytes is not installed.
        """
        files, how = locate(self.path, self.revision), self.attention
        model = read_model(files, dtype=self.dtype, attention=how, quantize=self.quantize)
        return model if self.lora is None else _with_adapter(model, self.lora, seed)

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """The model's own tokenizer."""
        return read_tokenizer(locate(self.path, self.revision))

    def parameter_groups(self, model: PreTrainedModel) -> list[dict[str, Any]]:
        """The trainable parameters, in one group: all, or the adapter's."""
        return [{"params": [p for p in model.parameters() if p.requires_grad], "label": "policy"}]


def _with_adapter(model: PreTrainedModel, lora: Lora, seed: int) -> PreTrainedModel:
    import torch
    from peft import LoraConfig, get_peft_model

    targets = lora.targets if isinstance(lora.targets, str) else list(lora.targets)
    config = LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        adapted: Any = get_peft_model(model, config)
    result: PreTrainedModel = adapted
    return result
