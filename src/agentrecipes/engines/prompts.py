"""Prompts on their way into the cache: nothing is computed that is at hand, or twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from agentrecipes.engines.cache import Ids, Rows
from agentrecipes.engines.forward import Network
from agentrecipes.engines.shelf import Shelf
from agentrecipes.engines.state import Ticket

SHELF_BYTES = 2**30  # keys and values of earlier turns that are kept for the next one
EMPTY = 1.5  # seats by row, up to which a group's prompt is read once for all its rows
SPARSE = 2.0  # columns by column of the longest row, above which rows are moved together
SLACK = 128  # columns that are never too many


@dataclass(slots=True)
class Counts:
    """Tokens since the start, for tests and metrics."""

    prefilled: int = 0  # prompt tokens that were computed
    reused: int = 0  # prompt tokens whose keys were at hand, from a group or an earlier turn
    sampled: int = 0
    steps: int = 0  # forward passes of one token a row


class Prompts:
    """The prompts of one network, and the rows of turns that are over."""

    def __init__(self, network: Network) -> None:
        self.counts = Counts()
        self._network = network
        self._shelf = Shelf(SHELF_BYTES, torch.float32 if network.shares else None)

    def clear(self) -> None:
        """Forget all keys and values."""
        self._shelf.clear()

    def compute(self, asked: Sequence[Ids], *, room: int) -> tuple[Rows, Tensor]:
        """Rows that hold each whole prompt, with `room` columns more, and the logits (R, V)."""
        row_of = {ids: row for row, ids in enumerate(dict.fromkeys(asked))}
        prompts = list(row_of)
        found = self._shelf.match(prompts)
        starts = [len(hit[0].ids[hit[1]]) if hit else 0 for hit in found]
        news = [ids[start:] for ids, start in zip(prompts, starts, strict=True)]
        repeated = len(prompts) < len(asked)
        columns = max(map(len, news)) + (0 if repeated else room)
        rows = self._shelf.gather(found, self._network.layers, columns=columns)
        logits = self._network.prefill(rows, news, starts=starts)
        computed = sum(map(len, news))
        self.counts.prefilled += computed
        self.counts.reused += sum(map(len, asked)) - computed
        if repeated:
            listed = [row_of[ids] for ids in asked]
            source = torch.tensor(listed, device=self._network.device)
            logits = logits[source]
            once = self._network.shares and rows.shared is None and _even(listed)
            rows = rows.begun(listed, room) if once else rows.spread(source, room)
        return rows, logits

    def keep(self, rows: Rows, tickets: Sequence[Ticket]) -> None:
        """Put the rows of a batch that is over on the shelf, for the turns that continue them."""
        _end(rows, tickets, range(len(tickets)))
        rows.ids = [ticket.ids for ticket in tickets]
        self._shelf.keep(rows)

    def split(self, rows: Rows, tickets: list[Ticket]) -> Rows:
        """The rows that still run, alone; those after them go on the shelf, with their tickets."""
        layers = len(rows.layers)
        over = range(rows.live, len(tickets))
        if over:
            _end(rows, tickets, over)
            kept = self._shelf.gather([(rows, row) for row in over], layers, columns=0)
            kept.ids = [tickets[row].ids for row in over]
            self._shelf.keep(kept)
            del tickets[rows.live :]
        rows.flatten()
        longest = int(rows.valid[: rows.live].sum(1).max())
        if rows.used > SPARSE * longest + SLACK:
            running = [(rows, row) for row in range(rows.live)]
            return self._shelf.gather(running, layers, columns=SLACK)
        return rows


def _end(rows: Rows, tickets: Sequence[Ticket], over: range) -> None:
    """Columns that a row got after its turn was over are not valid."""
    ends = torch.tensor([tickets[row].columns for row in over], device=rows.valid.device)
    column = torch.arange(rows.valid.shape[1], device=ends.device)
    rows.valid[over.start : over.stop] &= column < ends[:, None]


def _even(groups: list[int]) -> bool:
    """Whether rows of these groups sit in equal rows of seats without many being empty."""
    counts = Counter(groups)
    return len(counts) * max(counts.values()) <= EMPTY * len(groups)
