"""vLLM in the trainer's process: fast sampling, on the trainer's own devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from agentrecipes.components import component
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.engines.vllm_runtime.fields import VllmFields
from agentrecipes.errors import Problem

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.protocol import Engine


@component("engine")
class Vllm(VllmFields):
    """vLLM in this process, with weights of its own that follow the trainer's.

    A draw is a function of the request, as with `native`: it depends neither on the batch nor on
    timing, rounding apart. Kwon et al. 2023, https://arxiv.org/abs/2309.06180.
    """

    memory: Annotated[float, Field(gt=0.0, le=1.0)] = 0.4  # share of a GPU that is the engine's
    sleep: bool = True  # on a GPU: give its memory back while the trainer trains

    def rules(self, stage: Any) -> Iterable[Problem]:
        """One process, and a context that holds a trajectory."""
        trainer = stage.trainer
        if trainer.devices * trainer.nodes > 1:
            found = f"vllm samples in one process, and {trainer.devices * trainer.nodes} train"
            hint = "Write `engine: vllm_server`: it has processes of its own."
            yield Problem("contradiction", "", found, hint)
        yield from super().rules(stage)

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
