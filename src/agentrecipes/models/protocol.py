"""What a model part must do: build a causal language model and its tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class Model(Protocol):
    """The policy's network, as a Hugging Face causal language model."""

    def build(self, seed: int) -> PreTrainedModel:
        """A model on the CPU in training precision; random weights come from `seed`."""
        ...

    def tokenizer(self) -> PreTrainedTokenizerFast:
        """Its tokenizer, with a chat template."""
        ...

    def parameter_groups(self, model: PreTrainedModel) -> list[dict[str, Any]]:
        """Trainable parameters for the optimizer, ``{"params": […], "label": "policy"}`` each."""
        ...
