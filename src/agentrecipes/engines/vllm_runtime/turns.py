"""Requests as vLLM takes them, and samples from what it gives back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.engines.stopping import Stopping, end_ids
from agentrecipes.engines.vllm_runtime.worker import LIMIT, SEED, TEMPERATURE, TOP_P
from agentrecipes.errors import EngineError
from agentrecipes.numerics.streams import derive

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


NO_NUMBER = -9000.0  # what is not finite comes as -9999 from a server


@dataclass(frozen=True, slots=True)
class Drawn:
    """What vLLM gave for a request."""

    ids: Sequence[int]
    logp: Sequence[float]
    spans: Sequence[tuple[int, int]]  # (policy version, tokens up to where it drew)
    seconds: float


class Turns:
    """What the tokenizer and the model say about turns; turns end exactly as with `native`."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, longest: int
    ) -> None:
        self._stopping = Stopping(tokenizer, len(model.get_input_embeddings().weight))  # type: ignore[arg-type]
        self._ends = end_ids(model, tokenizer)
        self._longest = longest
        self._asked: dict[tuple[str, ...], dict[str, Any]] = {}

    def check(self, requests: Sequence[Request]) -> None:
        """Refuse what vLLM could not sample.

        Raises:
            EngineError: a request is empty or too long.
        """
        for request in requests:
            size = len(request.ids) + request.max_tokens
            if request.ids and request.max_tokens >= 1 and size <= self._longest:
                continue
            raise EngineError(
                f"vllm engine: a turn has {len(request.ids)} prompt tokens and up to "
                f"{request.max_tokens} new ones. Give at least one of each and at most "
                f"{self._longest} together: rollout.tokens, or the engine's context."
            )

    def asked(self, request: Request) -> dict[str, Any]:
        """vLLM's sampling parameters by name.

        Its own sampler is left no choice (see draw.py), so that temperature is 0 here.
        """
        stop = request.stop
        if stop not in self._asked:
            stops = self._stopping.of(stop)
            sure = stops.sure.nonzero()[:, 0].tolist()
            by_text = bool(stops.maybe.any())
            self._asked[stop] = {
                "temperature": 0.0,
                "logprobs": 0,  # that of the drawn token alone
                # strings that one token always says are looked for by id; others in the text
                "stop": list(stop) if by_text else [],
                "detokenize": by_text,
                "stop_token_ids": sorted({*sure, *self._ends}),
                "ignore_eos": True,  # ends are among the ids
                "skip_special_tokens": False,
                "spaces_between_special_tokens": False,
                "include_stop_str_in_output": True,
            }
        own = {
            SEED: derive(*request.key),
            LIMIT: request.max_tokens,
            TEMPERATURE: float(request.temperature),
            TOP_P: float(request.top_p),
        }
        return {**self._asked[stop], "max_tokens": request.max_tokens, "extra_args": own}

    def sample(self, request: Request, drawn: Drawn) -> Sample:
        """The turn, cut after the token that ends it.

        Raises:
            EngineError: vLLM gave nothing, or log-probabilities that are no numbers.
        """
        size, finish = self._end(request, drawn.ids)
        logp = tuple(float(value) for value in drawn.logp[:size])
        if not size or len(logp) < size or not all(value > NO_NUMBER for value in logp):
            raise EngineError(
                f"vllm engine: a turn of {size} tokens has log-probabilities {logp[:3]} … that are "
                "not finite. Lower the learning rate, or go back to an earlier checkpoint."
            )
        versions: list[int] = []
        for version, end in drawn.spans:
            versions += [version] * (min(end, size) - len(versions))
        several = tuple(versions) if len(set(versions)) > 1 else ()
        return Sample(tuple(drawn.ids[:size]), logp, finish, versions[0], drawn.seconds, several)

    def _end(
        self, request: Request, ids: Sequence[int]
    ) -> tuple[int, Literal["stop", "eos", "length"]]:
        """How many tokens the turn has, and what ended it; a stop string comes before an end."""
        place = self._stopping.first(self._stopping.of(request.stop), ids)
        ends = [index for index, token in enumerate(ids) if token in self._ends]
        if place is not None and (not ends or place <= ends[0]):
            return place + 1, "stop"
        if ends:
            return ends[0] + 1, "eos"
        return len(ids), "length"


async def gathered(waiting: Sequence[asyncio.Future[Sample]]) -> list[Sample]:
    """All samples in their order; where one fails, or nobody waits any more, the others end."""
    try:
        return list(await asyncio.gather(*waiting))
    finally:
        for each in waiting:
            each.cancel()
