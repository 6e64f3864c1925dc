"""What an engine must do: take token ids, give token ids with their log-probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    import asyncio

    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


@dataclass(frozen=True, slots=True)
class Request:
    """One turn to sample.

    The randomness of token t is number t of a counter-based stream keyed by ``key``, so that a draw
    depends neither on the batch it stands in nor on timing.
    """

    ids: tuple[int, ...]  # the whole prompt
    key: tuple[int | str, ...]  # (seed, stage, iteration, purpose, task, attempt, turn, refill)
    max_tokens: int
    stop: tuple[str, ...] = ()  # strings that end the turn, kept in the sample
    temperature: float = 1.0  # 0 is greedy
    top_p: float = 1.0


@dataclass(frozen=True, slots=True)
class Sample:
    """What was sampled: ids as sampled (stop included), nats at the sampling temperature."""

    ids: tuple[int, ...]
    logp: tuple[
        float, ...
    ]  # under softmax(logits / temperature) of the whole vocabulary; greedy: temperature 1
    finish: Literal["stop", "eos", "length"]
    policy_version: int  # of the first token
    seconds: float
    policy_versions: tuple[int, ...] = ()  # by token, where new weights came in between; else empty


class Engine(Protocol):
    """Who samples."""

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """One sample per request, in their order.

        Raises:
            EngineError: the sampler failed.
        """
        ...

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take new weights: (Hugging Face name, tensor), ``lm_head.weight`` always among them.

        Raises:
            EngineError: they are not this model's, or could not be taken.
        """
        ...

    def rest(self) -> None:
        """Nothing will be sampled until the next `load`: what the trainer can use is given back."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Joined(Protocol):
    """What an engine has besides if its batch can be joined while it is sampled."""

    def submit(self, requests: Sequence[Request]) -> list[asyncio.Future[Sample]]:
        """A future by request, of the running event loop; cancelling it ends its sampling.

        Raises:
            EngineError: a request cannot be sampled. What fails later is in the futures.
        """
        ...


class EnginePart(Protocol):
    """What YAML can say about an engine; started once for a run."""

    @property
    def order(self) -> Literal["fixed", "ready"]:
        """The ``rollout.order`` that this engine takes where the recipe names none."""
        ...

    def bound(self, *, fp32: bool) -> float | None:
        """Most nats between a token's log-probability here and in the trainer; None: no bound.

        `fp32`: whether the trainer computes in float32.
        """
        ...

    def require(self) -> None:
        """Nothing, if the engine is installed; asked before a run begins.

        Raises:
            MissingExtra: it is not; the message has the command that installs it.
        """
        ...

    def start(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Engine:
        """An engine that samples from `model`, policy version 0.

        Raises:
            EngineError: it cannot sample from such a model.
            MissingExtra: the engine is not installed.
        """
        ...
