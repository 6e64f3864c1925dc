"""vLLM behind HTTP: processes of its own, on this machine or on others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field, model_validator

from agentrecipes.components import component
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.engines.vllm_runtime.fields import VllmFields
from agentrecipes.errors import Problem

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.protocol import Engine

Port = Annotated[int, Field(ge=1, le=65535)]


@component("engine")
class VllmServer(VllmFields):
    """vLLM servers that are started for the run, or that are there already.

    A draw is a function of the request, as with `native`, so that it does not matter which server
    answers. Weights go to them as a file. Kwon et al. 2023, https://arxiv.org/abs/2309.06180.
    """

    urls: tuple[
        Annotated[str, Field(pattern=r"^https?://")], ...
    ] = ()  # servers that are there; empty: one is started for each entry of `devices`, or one
    devices: tuple[
        tuple[int, ...], ...
    ] = ()  # GPUs of each server that is started; several GPUs share its model
    port: Port | None = None  # of the first server that is started; null: any that is free
    folder: str | None = (
        None  # where weights are handed over, seen by trainer and servers; null: a temporary one
    )
    memory: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9  # share of a GPU that is the engine's
    sleep: bool = False  # on GPUs that the trainer uses too: give them back while it trains
    start_seconds: Annotated[float, Field(gt=0.0)] = 900.0  # longest wait for a server to start

    @model_validator(mode="after")
    def _one_or_the_other(self) -> VllmServer:
        if self.urls and (self.devices or self.port):
            raise ValueError("urls names servers that are there: devices and port start others")
        if self.urls and self.sleep:
            raise ValueError("sleep is for servers that are started here; these are others'")
        return self

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A context that holds a trajectory; a server of its own for each sleeping device."""
        devices = stage.trainer.devices
        if self.sleep and len(self.devices or ((),)) < devices:
            found = f"sleep: one of {devices} devices would put a server to sleep that others ask"
            hint = f"Write {devices} entries in `devices`, or `sleep: false`."
            yield Problem("contradiction", "sleep", found, hint)
        yield from super().rules(stage)

    def require(self) -> None:
        """Nothing, if a tested vLLM is installed, or the servers are there.

        Raises:
            MissingExtra: it is not.
        """
        if not self.urls:
            setup.require()

    def start(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Engine:
        """An engine that samples once weights are loaded.

        Raises:
            EngineError: a server does not start or answer, or serves another model.
            MissingExtra: vLLM is not installed, or in a version that was not tested.
        """
        self.require()
        from agentrecipes.engines.vllm_runtime.remote import RemoteEngine

        return RemoteEngine(model, tokenizer, self)
