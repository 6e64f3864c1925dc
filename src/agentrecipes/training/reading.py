"""Stages that read data: demonstrations as rows, and which of them each optimizer step gets.

Everything is a function of the step, so that any step can be made again without the ones before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from agentrecipes.demonstrations.protocol import Demonstration, Demonstrations
from agentrecipes.environments.protocol import Environment
from agentrecipes.environments.renaming import permutation
from agentrecipes.numerics.streams import derive
from agentrecipes.recipe.schema import Trainer
from agentrecipes.rollout.chat import Chat, Role
from agentrecipes.training.batch import MicroBatch, filled, packed, read_batch
from agentrecipes.training.rows import Row
from agentrecipes.training.telling import demonstration_rows
from agentrecipes.training.weighing import Weighing

LEADS = (" ", "\n", "")  # what may stand before a word within its token
CHECKED = 16  # demonstrations that are written again once to see whether their ids can be permuted
Thoughtful = tuple[Row, np.ndarray]  # a row, and (T,) bool where its thoughts are
BUCKET = 8  # steps whose rows are sorted by length together, so that similar lengths meet


@dataclass(frozen=True)
class NameTokens:
    """Interchangeable names as token ids, where each form of each name is a single token."""

    ids: np.ndarray  # (forms, names) int64
    vocabulary: int

    @classmethod
    def of(cls, chat: Chat, symbols: frozenset[str]) -> NameTokens | None:
        """The names' tokens; None where there are no names, or one of them takes several tokens."""
        forms = [[chat.encode(lead + name) for name in sorted(symbols)] for lead in LEADS]
        whole = [form for form in forms if all(len(ids) == 1 for ids in form)]
        if not symbols or not whole:
            return None
        ids = np.array([[own[0] for own in form] for form in whole], dtype=np.int64)
        return cls(ids, int(ids.max()) + 1)

    def renamed(self, ids: np.ndarray, seed: int) -> np.ndarray:
        """`ids` (T,) under the permutation of names that `seed` stands for."""
        table = np.arange(max(self.vocabulary, int(ids.max()) + 1))
        order = permutation(self.ids.shape[1], seed)
        for form in self.ids:
            table[form] = form[order]
        renamed: np.ndarray = table[ids]
        return renamed


@dataclass(frozen=True)
class Reader:
    """Demonstrations in a fixed shuffled order, pass after pass, each use under fresh names."""

    demonstrations: Demonstrations
    environment: Environment
    chat: Chat
    seed: int
    weighing: Callable[[int], Weighing]  # in each step
    trainer: Trainer
    row_tokens: int  # longest row; a longer demonstration is cut at its end

    @cached_property
    def drawn(self) -> Sequence[Demonstration]:
        """All demonstrations, in the order of the part."""
        return self.demonstrations.draw(self.environment, derive(self.seed, "demonstrations"))

    def numbers(self, step: int) -> list[int]:
        """The demonstrations of an optimizer step, counted from 0.

        A bucket of steps is drawn together, sorted by length and dealt to its steps in random
        order: rows of one step are alike in length, and steps are not sorted.
        """
        block, inside = divmod(step, BUCKET)
        count, size = len(self.drawn), BUCKET * self.trainer.rows_per_step
        picked: list[int] = []
        for place in range(block * size, (block + 1) * size):
            cycle, offset = divmod(place, count)
            picked.append(int(self._order(cycle)[offset]))
        picked.sort(key=lambda n: (self._lengths[n], n))
        deal = np.random.default_rng(derive(self.seed, "deal", block)).permutation(BUCKET)
        first = int(deal[inside]) * self.trainer.rows_per_step
        return picked[first : first + self.trainer.rows_per_step]

    def _order(self, cycle: int) -> np.ndarray:
        if cycle not in self._orders:
            random = np.random.default_rng(derive(self.seed, "order", cycle))
            self._orders.clear()
            self._orders[cycle] = random.permutation(len(self.drawn))
        return self._orders[cycle]

    @cached_property
    def _orders(self) -> dict[int, np.ndarray]:
        return {}

    @cached_property
    def _lengths(self) -> list[int]:
        return [sum(len(a) + len(o) for a, o in each.turns) for each in self.drawn]

    def rows(self, step: int) -> list[Row]:
        """The rows of an optimizer step."""
        weighing = self.weighing(step)
        told = [
            self._told(number, place, seed=derive(self.seed, "restate", step, place), by=weighing)
            for place, number in enumerate(self.numbers(step))
        ]
        return [weighing.weighted(*each) for own in told for each in own]

    def _told(self, number: int, place: int, *, seed: int, by: Weighing) -> list[Thoughtful]:
        """A demonstration under names of its own: its rows, and where their thoughts are.

        Where every name is one token, the ids of the written rows are permuted: the same as writing
        it again under the new names and tokenising that, at a tenth of the time.
        """
        names = self._names
        if names is None:
            told = self.demonstrations.restate(self.drawn[number], self.environment, seed)
            return self._rows(told, place, by)
        if number not in self._written:
            self._written[number] = self._rows(self.drawn[number], 0, by)
        return [
            (replace(row, ids=names.renamed(row.ids, seed), trajectory=place), thought)
            for row, thought in self._written[number]
        ]

    @property
    def _role(self) -> Role:
        return self.environment.protocol.observation_role

    @cached_property
    def _written(self) -> dict[int, list[Thoughtful]]:
        return {}

    @cached_property
    def _names(self) -> NameTokens | None:
        """The names' tokens, where permuting them gives what writing again gives."""
        names = NameTokens.of(self.chat, self.environment.symbols)
        for seed, drawn in enumerate(self.drawn[:CHECKED] if names is not None else ()):
            told = self.demonstrations.restate(drawn, self.environment, seed)
            again = demonstration_rows(told, self.chat, number=0, role=self._role)
            rows = demonstration_rows(drawn, self.chat, number=0, role=self._role)
            pairs = zip(rows, again, strict=True)
            if names is None or not all(
                np.array_equal(names.renamed(row.ids, seed), other.ids) for row, other in pairs
            ):
                return None
        return names

    def _rows(self, told: Demonstration, number: int, by: Weighing) -> list[Thoughtful]:
        """The rows of a demonstration, cut to the longest row, and where their thoughts are."""
        rows = demonstration_rows(told, self.chat, number=number, role=self._role)
        cut = [row.cut(self.row_tokens) for row in rows]
        acting = [row for row in cut if row.action_mask.any()] or cut[:1]
        return [(row, by.thoughts(row, told, self.chat)) for row in acting]

    def micro_batches(self, step: int, most: int) -> list[MicroBatch]:
        """A rank's micro-batches for an optimizer step of `most`, fillers included."""
        rows = self.rows(step)
        batch = read_batch(rows)
        numbers = range(len(rows))
        parts = packed(rows, batch, numbers, trainer=self.trainer, most=most)
        made = [replace(micro, policy_version=step) for _, micro in parts]
        return filled(made, most, step)
