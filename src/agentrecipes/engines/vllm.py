"""vLLM in the trainer's process: fast sampling, on the trainer's own devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.errors import Problem

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.protocol import Engine


@component("engine")
class Vllm(Component):
    """vLLM in this process, with weights of its own that follow the trainer's.

    A draw is a function of the request, as with `native`: it depends neither on the batch nor on
    timing, rounding apart. Kwon et al. 2023, https://arxiv.org/abs/2309.06180.
    """

    order: ClassVar[Literal["fixed", "ready"]] = "ready"

    dtype: Literal["fp32", "bf16"] | None = None  # of the engine's weights; null: the model's
    context: Annotated[int, Field(ge=2)] | None = (
        None  # most tokens of a prompt and its answer; null: the model's positions
    )
    sequences: Annotated[int, Field(ge=1)] = 256  # most turns that are sampled at once
    cache_gib: Annotated[float, Field(gt=0.0)] | None = (
        None  # memory for keys and values; null: a quarter GiB on a CPU, `memory` on a GPU
    )
    memory: Annotated[float, Field(gt=0.0, le=1.0)] = 0.4  # share of a GPU that is the engine's
    sleep: bool = True  # on a GPU: give its memory back while the trainer trains
    eager: bool | None = None  # no compiled graphs; null: on a CPU
    max_gap: Annotated[float, Field(gt=0.0)] | None = (
        None  # nats that a token's log-probability may differ from the trainer's before the run
        # stops; null: 0.01 in fp32, 2 in bf16
    )

    def rules(self, stage: Any) -> Iterable[Problem]:
        """One process, and a context that holds a trajectory."""
        trainer, tokens = stage.trainer, stage.rollout.tokens
        if trainer.devices * trainer.nodes > 1:
            found = f"vllm samples in one process, and {trainer.devices * trainer.nodes} train"
            hint = "Write `engine: vllm_server`: it has processes of its own."
            yield Problem("contradiction", "", found, hint)
        if self.context is not None and self.context < tokens:
            found = f"a trajectory may have {tokens} tokens, and the engine's context is shorter"
            yield Problem("contradiction", "context", found, f"Write at least {tokens}.")

    def bound(self, *, fp32: bool) -> float | None:
        """Most nats between a token's log-probability here and in the trainer."""
        return setup.bound(self, fp32=fp32)

    def require(self) -> None:
        """Nothing, if a tested vLLM is installed.

        Raises:
            MissingExtra: it is not.
        """
        setup.require()

    def start(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Engine:
        """An engine that samples once weights are loaded; policy version 0.

        Raises:
            EngineError: vLLM cannot build such a model, or there is no memory for it.
            MissingExtra: vLLM is not installed, or in a version that was not tested.
        """
        self.require()
        setup.environment({"VLLM_ENABLE_V1_MULTIPROCESSING": "0"})
        from agentrecipes.engines.vllm_runtime.local import LocalEngine

        return LocalEngine(model, tokenizer, self)
