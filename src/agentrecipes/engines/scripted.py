"""An engine that says what it was told to: for tests, and to watch an environment at work."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.errors import EngineError

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from agentrecipes.engines.protocol import Engine

Answer = Callable[[Request], str]


@component("engine")
class Scripted(Component):
    """Every trajectory says these texts, one a turn."""

    texts: tuple[str, ...]  # the last one is said again when they run out
    order: ClassVar[Literal["fixed", "ready"]] = "fixed"

    def bound(self, *, fp32: bool) -> float | None:
        """Its log-probabilities are no model's: there is none."""
        return None

    def require(self) -> None:
        """It is part of this package."""

    def start(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> Engine:
        """An engine that never looks at `model`."""
        return ScriptedEngine(tokenizer, self._answer)

    def _answer(self, request: Request) -> str:
        turn = request.key[-2] if len(request.key) > 1 else 0  # (..., attempt, turn, refill)
        return self.texts[min(int(turn), len(self.texts) - 1)]


class ScriptedEngine:
    """Answers each request with ``answer(request)``, as ids of log-probability 0.

    A text that is longer than the request allows is cut; one without a stop string at its end is
    closed with the end token.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast, answer: Answer) -> None:
        self.requests: list[Request] = []  # all that were asked, for tests
        self._tokenizer = tokenizer
        self._answer = answer
        self._version = 0

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """What the script says to each request."""
        self.requests += requests
        return [self._sample(request) for request in requests]

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Only the version is of interest."""
        self._version = version

    def rest(self) -> None:
        """It holds nothing that a trainer could use."""

    def close(self) -> None:
        """Nothing is held open."""

    def _sample(self, request: Request) -> Sample:
        if request.max_tokens < 1:
            raise EngineError("scripted engine: a request has max_tokens below 1. Give at least 1.")
        text = self._answer(request)
        ids = self._tokenizer(text, add_special_tokens=False, split_special_tokens=True)[
            "input_ids"
        ]
        finish: Literal["stop", "eos", "length"] = "stop"
        if not any(text.endswith(stop) for stop in request.stop):
            ids, finish = [*ids, self._tokenizer.eos_token_id], "eos"
        if len(ids) > request.max_tokens:
            ids, finish = ids[: request.max_tokens], "length"
        return Sample(tuple(ids), (0.0,) * len(ids), finish, self._version, 0.0)
