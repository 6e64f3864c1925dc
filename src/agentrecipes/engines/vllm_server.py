"""vLLM behind HTTP: processes of its own, on this machine or on others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from agentrecipes.components import Component, component
from agentrecipes.engines.vllm_runtime import setup
from agentrecipes.errors import Problem

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.protocol import Engine

Port = Annotated[int, Field(ge=1, le=65535)]


@component("engine")
class VllmServer(Component):
    """vLLM servers that are started for the run, or that are there already.

    A draw is a function of the request, as with `native`, so that it does not matter which server
    answers. Weights go to them as a file. Kwon et al. 2023, https://arxiv.org/abs/2309.06180.
    """

    order: ClassVar[Literal["fixed", "ready"]] = "ready"

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
    dtype: Literal["fp32", "bf16"] | None = None  # of the engine's weights; null: the model's
    context: Annotated[int, Field(ge=2)] | None = (
        None  # most tokens of a prompt and its answer; null: the model's positions
    )
    sequences: Annotated[int, Field(ge=1)] = 256  # most turns that a server samples at once
    cache_gib: Annotated[float, Field(gt=0.0)] | None = (
        None  # memory for keys and values; null: a quarter GiB on a CPU, `memory` on a GPU
    )
    memory: Annotated[float, Field(gt=0.0, le=1.0)] = 0.9  # share of a GPU that is the engine's
    sleep: bool = False  # on GPUs that the trainer uses too: give them back while it trains
    eager: bool | None = None  # no compiled graphs; null: on a CPU
    start_seconds: Annotated[float, Field(gt=0.0)] = 900.0  # longest wait for a server to start
    max_gap: Annotated[float, Field(gt=0.0)] | None = (
        None  # nats that a token's log-probability may differ from the trainer's before the run
        # stops; null: 0.01 in fp32, 2 in bf16
    )

    @model_validator(mode="after")
    def _one_or_the_other(self) -> VllmServer:
        if self.urls and (self.devices or self.port):
            raise ValueError("urls names servers that are there: devices and port start others")
        if self.urls and self.sleep:
            raise ValueError("sleep is for servers that are started here; these are others'")
        return self

    def rules(self, stage: Any) -> Iterable[Problem]:
        """A context that holds a trajectory; a server of its own for each sleeping device."""
        tokens, devices = stage.rollout.tokens, stage.trainer.devices
        if self.sleep and len(self.devices or ((),)) < devices:
            found = f"sleep: one of {devices} devices would put a server to sleep that others ask"
            hint = f"Write {devices} entries in `devices`, or `sleep: false`."
            yield Problem("contradiction", "sleep", found, hint)
        if self.context is not None and self.context < tokens:
            found = f"a trajectory may have {tokens} tokens, and the engine's context is shorter"
            yield Problem("contradiction", "context", found, f"Write at least {tokens}.")

    def bound(self, *, fp32: bool) -> float | None:
        """Most nats between a token's log-probability here and in the trainer."""
        return setup.bound(self, fp32=fp32)

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
