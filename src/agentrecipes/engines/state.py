"""What the native engine knows about its rows while it samples them."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import pad

from agentrecipes.engines.cache import Ids, Rows
from agentrecipes.engines.draw import Ways
from agentrecipes.engines.protocol import Request, Sample
from agentrecipes.errors import EngineError
from agentrecipes.numerics.streams import uniforms

Finish = Literal["stop", "eos", "length"]


@dataclass(slots=True, eq=False)
class Ticket:
    """A request on its way, and who waits for it."""

    request: Request
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Sample]
    started: float = 0.0  # when its prompt was computed
    ids: Ids = ()  # what its row holds once it is over: prompt and turn without the last token
    columns: int = 0  # of its row in the cache, once it is over

    @property
    def unwanted(self) -> bool:
        """Nobody waits for it any more."""
        return self.future.cancelled()


def deliver(answers: Sequence[tuple[Ticket, Sample] | tuple[Ticket, BaseException]]) -> None:
    """Tell those who wait, each in its own event loop; called from the sampler's thread."""
    loops = {id(ticket.loop): ticket.loop for ticket, _ in answers}
    for loop in loops.values():
        own = [(t.future, answer) for t, answer in answers if t.loop is loop]
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(_settle, own)


def _settle(answers: list[tuple[asyncio.Future[Sample], Sample | BaseException]]) -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)


@dataclass(slots=True)
class State:
    """The tickets by row of the cache; the first n rows are in the batch, the others are over."""

    tickets: list[Ticket]
    uniform: Tensor  # (n, S) float64: number t of a request's own stream
    places: Tensor  # (n,) position of the next sampled token
    ages: Tensor  # (n,) tokens sampled so far
    limits: Tensor  # (n,) most tokens
    ids: Tensor  # (n, S) sampled; what stands after a row's age means nothing
    logp: Tensor  # (n, S) float32
    done: Tensor  # (n,) bool
    sets: Tensor  # (n,) which of the batch's stop sets it has
    ways: Ways

    @classmethod
    def of(cls, tickets: list[Ticket], device: torch.device) -> State:
        """The state before the first token."""
        requests = [ticket.request for ticket in tickets]
        count, most = len(requests), max(request.max_tokens for request in requests)
        uniform = np.zeros((count, most))
        for row, request in enumerate(requests):
            if request.temperature > 0:
                uniform[row, : request.max_tokens] = uniforms(request.key, request.max_tokens)
        return cls(
            tickets=tickets,
            uniform=torch.from_numpy(uniform).to(device),
            places=torch.tensor([len(request.ids) for request in requests], device=device),
            ages=torch.zeros(count, dtype=torch.int64, device=device),
            limits=torch.tensor([request.max_tokens for request in requests], device=device),
            ids=torch.zeros((count, most), dtype=torch.int64, device=device),
            logp=torch.zeros((count, most), device=device),
            done=torch.zeros(count, dtype=torch.bool, device=device),
            sets=torch.zeros(count, dtype=torch.int64, device=device),
            ways=Ways.of(requests, device),
        )

    @property
    def live(self) -> list[Ticket]:
        return self.tickets[: len(self.done)]

    def finish(self, row: int, finish: Finish, *, seconds: float, version: int) -> Sample:
        """The sample of a row that is over with the token drawn last.

        Raises:
            EngineError: a log-probability is not a finite number.
        """
        size = int(self.ages[row]) + 1
        ids, logp = self.ids[row, :size].tolist(), self.logp[row, :size].tolist()
        if not all(math.isfinite(value) for value in logp):
            raise EngineError(
                "native engine: the model gives log-probabilities that are not finite. "
                "Lower the learning rate, or go back to an earlier checkpoint."
            )
        self.tickets[row].ids = (*self.tickets[row].request.ids, *ids[:-1])
        return Sample(tuple(ids), tuple(logp), finish, version, seconds)

    def drop(self) -> None:
        """Rows that nobody waits for are over, and leave nothing behind."""
        for row, ticket in enumerate(self.live):
            if ticket.unwanted:
                self.done[row] = True

    def compact(self, rows: Rows) -> Tensor:
        """Take the finished rows out of the batch; (n,) the row before that each row is now.

        The last rows still running change places with finished ones, in the cache too, where the
        finished ones stay for their next turn.
        """
        count = len(self.done)
        kept = count - int(self.done.sum())
        was = torch.arange(count, device=self.done.device)
        holes = was[:kept][self.done[:kept]]
        fill = was[kept:][~self.done[kept:]]
        rows.swap(holes, fill)
        rows.narrow(kept)
        for one, other in zip(holes.tolist(), fill.tolist(), strict=True):
            tickets = self.tickets
            tickets[one], tickets[other] = tickets[other], tickets[one]
        was[holes] = fill
        was = was[:kept]
        for name in ("uniform", "places", "ages", "limits", "ids", "logp", "done", "sets"):
            setattr(self, name, getattr(self, name)[was])
        self.ways = self.ways.rows(was)
        return was

    def join(self, new: State) -> None:
        """Put the rows of `new` after those in the batch, all of which are running."""
        most = max(self.ids.shape[1], new.ids.shape[1])
        for name in ("uniform", "ids", "logp"):
            both = (getattr(self, name), getattr(new, name))
            wide = [pad(one, (0, most - one.shape[1])) for one in both]
            setattr(self, name, torch.cat(wide))
        self.tickets = self.live + new.tickets
        for name in ("places", "ages", "limits", "done", "sets"):
            setattr(self, name, torch.cat([getattr(self, name), getattr(new, name)]))
        self.ways = Ways.of([t.request for t in self.tickets], self.done.device)
