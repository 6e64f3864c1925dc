"""What a call of the native engine knows about its rows while it samples them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from agentrecipes.engines.cache import Rows
from agentrecipes.engines.draw import Ways
from agentrecipes.engines.protocol import Request
from agentrecipes.errors import EngineError
from agentrecipes.numerics.streams import uniforms


@dataclass(slots=True)
class State:
    """R requests of up to S tokens, n of them still in the batch."""

    uniform: Tensor  # (R, S) float64: number t of a request's own stream
    starts: Tensor  # (R,) position of the first sampled token
    limits: Tensor  # (R,) most tokens
    ids: Tensor  # (R, S) sampled; what stands after a row's length means nothing
    logp: Tensor  # (R, S) float32
    lengths: Tensor  # (R,) tokens sampled, where the row is done
    stopped: Tensor  # (R,) bool: a stop string ended it
    all_ways: Ways  # by request
    order: Tensor  # (R,) the request in each row of the cache
    live: Tensor  # (n,) the request in each row that is in the batch: the first n of `order`
    ways: Ways  # by live row
    done: Tensor  # (n,) bool
    step: int = 0

    @classmethod
    def of(cls, requests: Sequence[Request], device: torch.device) -> State:
        """The state before the first token."""
        count, most = len(requests), max(request.max_tokens for request in requests)
        uniform = np.zeros((count, most))
        for row, request in enumerate(requests):
            if request.temperature > 0:
                uniform[row, : request.max_tokens] = uniforms(request.key, request.max_tokens)
        ways = Ways.of(requests, device)
        order = torch.arange(count, device=device)
        return cls(
            uniform=torch.from_numpy(uniform).to(device),
            starts=torch.tensor([len(request.ids) for request in requests], device=device),
            limits=torch.tensor([request.max_tokens for request in requests], device=device),
            ids=torch.zeros((count, most), dtype=torch.int64, device=device),
            logp=torch.zeros((count, most), device=device),
            lengths=torch.zeros(count, dtype=torch.int64, device=device),
            stopped=torch.zeros(count, dtype=torch.bool, device=device),
            all_ways=ways,
            order=order,
            live=order,
            ways=ways,
            done=torch.zeros(count, dtype=torch.bool, device=device),
        )

    def compact(self, rows: Rows) -> Tensor:
        """Take the finished rows out of the batch; (n,) the row before that each row is now.

        The last rows still running change places with finished ones, in the cache too, where the
        finished ones stay for their next turn.
        """
        count = len(self.live)
        kept = count - int(self.done.sum())
        was = torch.arange(count, device=self.done.device)
        holes = was[:kept][self.done[:kept]]
        fill = was[kept:][~self.done[kept:]]
        rows.swap(holes, fill)
        rows.narrow(kept)
        was[holes], was[fill] = fill, holes
        self.order[:count] = self.order[:count][was]
        self.live = self.order[:kept]
        self.ways = self.all_ways.rows(self.live)
        self.done = torch.zeros_like(self.done[:kept])
        return was[:kept]

    def rows(self) -> tuple[list[list[int]], list[list[float]]]:
        """What each request drew: ids and nats.

        Raises:
            EngineError: a log-probability is not a finite number.
        """
        sizes, ids, logp = self.lengths.tolist(), self.ids.tolist(), self.logp.tolist()
        drawn = [row[:size] for row, size in zip(logp, sizes, strict=True)]
        if not all(math.isfinite(value) for row in drawn for value in row):
            raise EngineError(
                "native engine: the model gives log-probabilities that are not finite. "
                "Lower the learning rate, or go back to an earlier checkpoint."
            )
        return [row[:size] for row, size in zip(ids, sizes, strict=True)], drawn
