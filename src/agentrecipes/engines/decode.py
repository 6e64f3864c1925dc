"""The decode loop: a token a step for every row that is not done, and no Python by row in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from agentrecipes.engines.cache import Rows
from agentrecipes.engines.draw import draw
from agentrecipes.engines.forward import Network
from agentrecipes.engines.protocol import Request
from agentrecipes.engines.state import State
from agentrecipes.engines.stopping import Stopping, StopSet
from agentrecipes.errors import EngineError

ROOM = 128  # columns that are added to the cache at a time


@dataclass(frozen=True, slots=True)
class Loop:
    """How a call's loop runs; what it gives does not depend on it, rounding apart."""

    compact_at: float = 0.25  # share of finished rows at which they leave the batch
    cancelled: Callable[[], bool] = lambda: False


class Decoding:
    """One call's loop; its tensors are indexed by request (R) or by live row of the cache (n)."""

    def __init__(self, network: Network, stopping: Stopping, ends: Sequence[int]) -> None:
        self._network = network
        self._stopping = stopping
        self._ends = torch.zeros(network.vocabulary, dtype=torch.bool, device=network.device)
        self._ends[list(ends)] = True

    def run(self, requests: Sequence[Request], rows: Rows, *, logits: Tensor, loop: Loop) -> State:
        """Sample until every row is done; row i of `rows` is request i's prompt.

        `logits` (R, V) are those after the prompts. Finished rows record nothing.
        """
        state = State.of(requests, self._network.device)
        stops = Stops.of(self._stopping, requests, self._network.device)
        while True:
            if loop.cancelled():
                raise EngineError("native engine: sampling was cancelled.")
            tokens = self._draw(state, logits, stops=stops)
            finished = int(state.done.sum())
            if finished == len(tokens):
                return state
            if finished >= loop.compact_at * len(tokens):
                tokens = tokens[state.compact(rows)]
            if rows.used == rows.valid.shape[1]:
                rows.reserve(ROOM)
            rows.valid[: len(tokens), rows.used] = True
            positions = state.starts[state.live] + state.step
            logits = self._network.step(rows, tokens, positions=positions)
            state.step += 1

    def _draw(self, state: State, logits: Tensor, *, stops: Stops) -> Tensor:
        """(n,) the next tokens; what they are and which rows they end is in `state` afterwards."""
        live, step = state.live, state.step
        tokens, logp = draw(logits, state.uniform[live, step], state.ways)
        state.ids[live, step] = tokens
        state.logp[live, step] = logp
        sets = stops.set_of[live]
        stopped = stops.sure[sets, tokens]
        ended = stopped | self._ends[tokens] | (step + 1 >= state.limits[live])
        if stops.any_maybe:
            unsure = stops.maybe[sets, tokens] & ~ended & ~state.done
            for row in unsure.nonzero()[:, 0].tolist():
                request = int(live[row])
                turn = state.ids[request, : step + 1].tolist()
                stopped[row] = self._stopping.hit(stops.sets[int(sets[row])], turn)
            ended |= stopped
        fresh = ended & ~state.done
        state.lengths[live] = torch.where(fresh, step + 1, state.lengths[live])
        state.stopped[live] |= fresh & stopped
        state.done |= ended
        return tokens

    def finish(self, state: State) -> list[Literal["stop", "eos", "length"]]:
        """By request: what ended its turn; a token that is an end and a stop string is a stop."""
        last = state.ids.gather(1, (state.lengths - 1)[:, None])[:, 0]
        ends = self._ends[last].tolist()
        stopped = state.stopped.tolist()
        return [
            "stop" if stop else "eos" if end else "length"
            for stop, end in zip(stopped, ends, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class Stops:
    """The stop sets of a call: K of them, and which one each request has."""

    sets: list[StopSet]
    sure: Tensor  # (K, V) bool
    maybe: Tensor  # (K, V) bool
    set_of: Tensor  # (R,) int64
    any_maybe: bool

    @classmethod
    def of(cls, stopping: Stopping, requests: Sequence[Request], device: torch.device) -> Stops:
        """Look every request's stop strings up."""
        index = {strings: k for k, strings in enumerate(dict.fromkeys(r.stop for r in requests))}
        sets = [stopping.of(strings) for strings in index]
        maybe = torch.stack([stops.maybe for stops in sets]).to(device)
        return cls(
            sets,
            sure=torch.stack([stops.sure for stops in sets]).to(device),
            maybe=maybe,
            set_of=torch.tensor([index[request.stop] for request in requests], device=device),
            any_maybe=bool(maybe.any()),
        )
