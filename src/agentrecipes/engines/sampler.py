"""The native engine: rows join and leave its batch between two tokens, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from agentrecipes.engines.decode import Decoding, Loop
from agentrecipes.engines.forward import Network
from agentrecipes.engines.prompts import Counts, Prompts
from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.engines.state import Ticket, deliver
from agentrecipes.engines.stopping import Stopping, end_ids
from agentrecipes.errors import EngineError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


class Sampler:
    """The engine of `native`; it samples in a thread of its own, so that tools go on meanwhile."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
        self.compact_at = 0.25  # share of finished rows at which they leave the batch
        self._network = Network(model)
        self._version = 0
        self._prompts = Prompts(self._network)
        stopping = Stopping(tokenizer, self._network.vocabulary)
        self._decoding = Decoding(self._network, stopping, end_ids(model, tokenizer))
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="native-engine")
        self._lock = threading.Lock()
        self._line: list[Ticket] = []  # those who are not in a batch yet
        self._busy = False
        self._closed = False

    @property
    def counts(self) -> Counts:
        return self._prompts.counts

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """One sample per request, in their order; one batch, if nothing else is sampled.

        Raises:
            EngineError: a request is empty or too long, or the model gives numbers that are none.
        """
        return list(await asyncio.gather(*self.submit(requests)))

    def submit(self, requests: Sequence[Request]) -> list[asyncio.Future[Sample]]:
        """A future by request; they join the batch that is being sampled at its next token.

        Raises:
            EngineError: a request is empty or too long.
        """
        self._check(requests)
        loop = asyncio.get_running_loop()
        tickets = [Ticket(request, loop, loop.create_future()) for request in requests]
        with self._lock:
            self._line += tickets
            if tickets and not self._busy:
                self._busy = True
                self._thread.submit(self._work)
        return [ticket.future for ticket in tickets]

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Copy weights into the model, except where they are its own; forget all keys and values.

        What is sampled at the time is finished first.

        Raises:
            EngineError: a name or a shape is not the model's.
        """
        self._thread.submit(lambda: None).result()
        self._network.load(weights)
        self._version = version
        self._prompts.clear()

    def rest(self) -> None:
        """Keys and values stay until other weights are loaded."""

    def close(self) -> None:
        """Stop sampling; the model stays as it is."""
        self._closed = True
        self._thread.shutdown(wait=True)
        self._prompts.clear()

    def _check(self, requests: Sequence[Request]) -> None:
        for request in requests:
            if not request.ids or request.max_tokens < 1:
                raise EngineError(
                    f"native engine: a request has {len(request.ids)} prompt tokens and max_tokens "
                    f"{request.max_tokens}. Give at least one of each."
                )
            size = len(request.ids) + request.max_tokens
            if size > self._network.longest:
                raise EngineError(
                    f"native engine: a turn of {len(request.ids)} prompt and up to "
                    f"{request.max_tokens} new tokens exceeds the model's "
                    f"{self._network.longest} positions. Lower rollout.tokens."
                )

    def _work(self) -> None:
        """Sample until nobody waits."""
        while True:
            with self._lock:
                tickets, self._line = self._line, []
                self._busy = bool(tickets)
            if not tickets:
                return
            self._batch(tickets)

    def _batch(self, tickets: list[Ticket]) -> None:
        """One batch and all that join it; a failure is told to everybody in it."""
        inside = list(tickets)

        def arrivals() -> list[Ticket]:
            if self._closed:
                raise EngineError("native engine: it was closed while it sampled.")
            if not self._line:
                return []
            with self._lock:
                arrived, self._line = self._line, []
            inside.extend(arrived)
            return arrived

        loop = Loop(arrivals, self.compact_at, self._version)
        try:
            with torch.inference_mode(), self._network.sampling():
                ended = self._decoding.run(tickets, self._prompts, loop=loop)
        except BaseException as error:
            deliver([(ticket, error) for ticket in inside])
            return
        self.counts.steps += ended.steps
        self.counts.sampled += ended.sampled
        deliver(ended.answers)
