"""The decode loop: a token a step for every row that is not done, and no Python by row in it.

Rows join between two steps (`Arrivals`) and leave when they are done.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from agentrecipes.engines.cache import Rows
from agentrecipes.engines.draw import draw
from agentrecipes.engines.forward import Network
from agentrecipes.engines.prompts import Prompts
from agentrecipes.engines.protocol import Sample
from agentrecipes.engines.state import Finish, State, Ticket, deliver
from agentrecipes.engines.stopping import Stopping, StopSet

ROOM = 128  # columns that are added to the cache at a time
Arrivals = Callable[[], list[Ticket]]


@dataclass(frozen=True, slots=True)
class Loop:
    """How a batch is run; what a row gives does not depend on it, rounding apart."""

    arrivals: Arrivals  # those who would join now
    compact_at: float = 0.25  # share of finished rows at which they leave the batch
    version: int = 0  # of the policy


@dataclass(frozen=True, slots=True)
class Ended:
    """What a batch leaves."""

    answers: list[tuple[Ticket, Sample]]  # nobody was told of these
    steps: int
    sampled: int  # tokens


class Decoding:
    """Batches on one network; tensors are indexed by live row of the cache (n)."""

    def __init__(self, network: Network, stopping: Stopping, ends: Sequence[int]) -> None:
        self._network = network
        self._stopping = stopping
        self._ends = torch.zeros(network.vocabulary, dtype=torch.bool, device=network.device)
        self._ends[list(ends)] = True

    def run(self, tickets: list[Ticket], prompts: Prompts, *, loop: Loop) -> Ended:
        """Sample until every row is done. Each is told when it is, but for those of the last step:
        who has heard of all may train the model, or load other weights."""
        rows, logits, state = self._begin(tickets, prompts)
        stops = Stops.of(self._stopping, state, self._ends)
        steps = sampled = 0
        while True:
            tokens, finished = self._draw(state, logits, stops=stops)
            answers = _answers(state, rows, finished=finished, version=loop.version)
            sampled += sum(len(sample.ids) for _, sample in answers)
            state.drop()
            over = int(state.done.sum())
            if over == len(tokens):
                prompts.keep(rows, state.tickets)
                return Ended(answers, steps, sampled)
            deliver(answers)
            if over >= loop.compact_at * len(tokens):
                tokens = tokens[state.compact(rows)]
            logits = self._step(rows, state, tokens)
            steps += 1
            if arrived := loop.arrivals():
                rows, logits = self._admit(rows, state, logits, arrived=arrived, prompts=prompts)
                stops = Stops.of(self._stopping, state, self._ends)

    def _begin(self, tickets: list[Ticket], prompts: Prompts) -> tuple[Rows, Tensor, State]:
        started = time.perf_counter()
        for ticket in tickets:
            ticket.started = started
        room = min(ROOM, max(ticket.request.max_tokens for ticket in tickets))
        rows, logits = prompts.compute([ticket.request.ids for ticket in tickets], room=room)
        return rows, logits, State.of(tickets, self._network.device)

    def _admit(
        self, rows: Rows, state: State, logits: Tensor, *, arrived: list[Ticket], prompts: Prompts
    ) -> tuple[Rows, Tensor]:
        """Let `arrived` join; the finished rows leave first. The batch's rows and logits (n, V)."""
        logits = logits[state.compact(rows)]
        rows = prompts.split(rows, state.tickets)
        new, more, fresh = self._begin(arrived, prompts)
        rows.join(new)
        state.join(fresh)
        return rows, torch.cat([logits, more])

    def _step(self, rows: Rows, state: State, tokens: Tensor) -> Tensor:
        """(n, V) logits after one more token a row."""
        if rows.used == rows.valid.shape[1]:
            rows.reserve(ROOM)
        rows.valid[: len(tokens), rows.used] = True
        logits = self._network.step(rows, tokens, positions=state.places)
        state.ages += 1
        state.places += 1
        return logits

    def _draw(
        self, state: State, logits: Tensor, *, stops: Stops
    ) -> tuple[Tensor, list[tuple[int, Finish]]]:
        """(n,) the next tokens, recorded in `state`; and the rows that they end, with what does."""
        age = state.ages[:, None]
        tokens, logp = draw(logits, state.uniform.gather(1, age)[:, 0], state.ways)
        state.ids.scatter_(1, age, tokens[:, None])
        state.logp.scatter_(1, age, logp[:, None])
        over = stops.over[state.sets, tokens]
        stopped = self._stopped(state, tokens, stops=stops, over=over) if stops.any_maybe else set()
        fresh = (over | (state.ages + 1 >= state.limits)) & ~state.done
        for row in stopped:
            fresh[row] = True
        finished: list[tuple[int, Finish]] = []
        if bool(fresh.any()):
            state.done |= fresh
            for row in fresh.nonzero()[:, 0].tolist():
                stop = row in stopped or bool(stops.sure[state.sets[row], tokens[row]])
                finish: Finish = "eos" if self._ends[tokens[row]] else "length"
                finished.append((row, "stop" if stop else finish))
        return tokens, finished

    def _stopped(self, state: State, tokens: Tensor, *, stops: Stops, over: Tensor) -> set[int]:
        """The running rows whose text now ends with a stop string that no token says alone."""
        unsure = stops.maybe[state.sets, tokens] & ~over & ~state.done
        found = set()
        for row in unsure.nonzero()[:, 0].tolist():
            turn = state.ids[row, : int(state.ages[row]) + 1].tolist()
            if self._stopping.hit(stops.sets[int(state.sets[row])], turn):
                found.add(row)
        return found


def _answers(
    state: State, rows: Rows, *, finished: Sequence[tuple[int, Finish]], version: int
) -> list[tuple[Ticket, Sample]]:
    """The samples of rows that are over, and whose they are."""
    answers = []
    for row, finish in finished:
        ticket = state.tickets[row]
        ticket.columns = rows.used  # the last token of a turn is never fed
        seconds = time.perf_counter() - ticket.started
        answers.append((ticket, state.finish(row, finish, seconds=seconds, version=version)))
    return answers


@dataclass(frozen=True, slots=True)
class Stops:
    """The stop sets of the rows in a batch, K of them."""

    sets: list[StopSet]
    sure: Tensor  # (K, V) bool
    maybe: Tensor  # (K, V) bool
    over: Tensor  # (K, V) bool: a stop string in one token, or an end
    any_maybe: bool

    @classmethod
    def of(cls, stopping: Stopping, state: State, ends: Tensor) -> Stops:
        """Look every row's stop strings up, and note in `state` which of the sets it has."""
        wanted = [ticket.request.stop for ticket in state.live]
        index = {strings: k for k, strings in enumerate(dict.fromkeys(wanted))}
        sets = [stopping.of(strings) for strings in index]
        sure = torch.stack([stops.sure for stops in sets]).to(ends.device)
        maybe = torch.stack([stops.maybe for stops in sets]).to(ends.device)
        state.sets = torch.tensor([index[strings] for strings in wanted], device=ends.device)
        return cls(sets, sure, maybe, sure | ends, bool(maybe.any()))
