"""The native engine: prompts are computed once, rows that another turn continues not again."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from agentrecipes.engines.cache import Rows, Shelf
from agentrecipes.engines.decode import ROOM, Decoding, Loop
from agentrecipes.engines.forward import Network
from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.engines.state import State
from agentrecipes.engines.stopping import Stopping, end_ids
from agentrecipes.errors import EngineError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SHELF_BYTES = 2**30  # keys and values of earlier calls that are kept for their next turn


@dataclass(slots=True)
class Counts:
    """Tokens since the start, for tests and metrics."""

    prefilled: int = 0  # prompt tokens that were computed
    reused: int = 0  # prompt tokens whose keys were at hand, from a group or an earlier turn
    sampled: int = 0
    steps: int = 0  # forward passes of one token a row


class Sampler:
    """The engine of `native`; it samples in a thread of its own, so that tools go on meanwhile."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerFast) -> None:
        self.counts = Counts()
        self.compact_at = 0.25  # share of finished rows at which they leave the batch
        self._network = Network(model)
        self._version = 0
        self._shelf = Shelf(SHELF_BYTES)
        self._stopping = Stopping(tokenizer, self._network.vocabulary)
        self._ends = end_ids(model, tokenizer)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="native-engine")
        self._cancelled = threading.Event()

    async def generate(self, requests: Sequence[Request]) -> list[Sample]:
        """One sample per request, in their order.

        Raises:
            EngineError: a request is empty or too long, or the model gives numbers that are none.
        """
        if not requests:
            return []
        self._check(requests)
        loop = asyncio.get_running_loop()
        self._cancelled = cancelled = threading.Event()  # of this call alone
        try:
            return await loop.run_in_executor(self._thread, self._run, list(requests), cancelled)
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def load(self, weights: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Copy weights into the model, except where they are its own; forget all keys and values.

        Raises:
            EngineError: a name or a shape is not the model's.
        """
        self._network.load(weights)
        self._version = version
        self._shelf.clear()

    def rest(self) -> None:
        """Keys and values stay until other weights are loaded."""

    def close(self) -> None:
        """Stop sampling; the model stays as it is."""
        self._cancelled.set()
        self._thread.shutdown(wait=True)
        self._shelf.clear()

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

    def _run(self, requests: list[Request], cancelled: threading.Event) -> list[Sample]:
        started = time.perf_counter()
        with torch.inference_mode(), self._network.sampling():
            rows, logits = self._prefill(requests)
            loop = Loop(self.compact_at, cancelled.is_set)
            decoding = Decoding(self._network, self._stopping, self._ends)
            state = decoding.run(requests, rows, logits=logits, loop=loop)
            self._keep(rows, requests, state=state)
        ids, logp = state.rows()
        self.counts.steps += state.step
        self.counts.sampled += sum(len(row) for row in ids)
        finish = decoding.finish(state)
        seconds = time.perf_counter() - started
        return [
            Sample(tuple(ids[i]), tuple(logp[i]), finish[i], self._version, seconds)
            for i in range(len(requests))
        ]

    def _prefill(self, requests: list[Request]) -> tuple[Rows, Tensor]:
        """Rows that hold each request's whole prompt, and the logits (R, V) of what comes next."""
        row_of = {ids: row for row, ids in enumerate(dict.fromkeys(r.ids for r in requests))}
        prompts = list(row_of)
        found = self._shelf.match(prompts)
        starts = [len(hit[0].ids[hit[1]]) if hit else 0 for hit in found]
        news = [ids[start:] for ids, start in zip(prompts, starts, strict=True)]
        room = min(ROOM, max(request.max_tokens for request in requests))
        shared = len(prompts) < len(requests)
        columns = max(map(len, news)) + (0 if shared else room)
        rows = self._shelf.gather(found, self._network.layers, columns=columns)
        logits = self._network.prefill(rows, news, starts=starts)
        computed = sum(map(len, news))
        self.counts.prefilled += computed
        self.counts.reused += sum(len(request.ids) for request in requests) - computed
        if shared:
            source = torch.tensor([row_of[request.ids] for request in requests])
            source = source.to(self._network.device)
            rows, logits = rows.spread(source, room), logits[source]
        return rows, logits

    def _keep(self, rows: Rows, requests: list[Request], *, state: State) -> None:
        """Put the rows on the shelf for the turns that continue them.

        The last token of a turn was never fed, so its keys are not there.
        """
        first = rows.used - state.step
        lengths = state.lengths[state.order]
        column = torch.arange(rows.valid.shape[1], device=lengths.device)
        rows.valid &= column < (first + lengths - 1)[:, None]
        ids, order = state.ids.tolist(), state.order.tolist()
        sizes = state.lengths.tolist()
        rows.ids = [(*requests[r].ids, *ids[r][: sizes[r] - 1]) for r in order]
        self._shelf.keep(rows)
