"""This package's own sampler: KV-cached, in the trainer's process, for any dense causal model."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from agentrecipes.components import Component, component

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.protocol import Engine


@component("engine")
class Native(Component):
    """Samples from the trained model itself; no server, no copy of the weights."""

    order: ClassVar[Literal["fixed", "ready"]] = "fixed"
    everywhere: ClassVar[bool] = True  # each rank of a run samples its share of the groups

    def bound(self, *, fp32: bool) -> float | None:
        """It samples from the trainer's own weights: there is none."""
        return None

    def require(self) -> None:
        """It is part of this package."""

    def start(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Engine:
        """An engine on `model`, which it shares; policy version 0.

        Raises:
            EngineError: the model attends through a sliding window or a kernel without masks.
        """
        from agentrecipes.engines.sampler import Sampler

        return Sampler(model, tokenizer)
