"""A written episode as rows, tokenised piece by piece as the rollout would have."""

from __future__ import annotations

import numpy as np

from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.records import Source
from agentrecipes.rollout.chat import Chat, Labelled, Role
from agentrecipes.training.rows import Row


def demonstration_rows(told: Demonstration, chat: Chat, *, number: int, role: Role) -> list[Row]:
    """The rows of a written episode; more than one where its context was edited.

    What an edited context shows again is PROMPT and weighs nothing: it was learned where it was
    written.
    """
    opening, first = chat.prompt(told.messages), _Telling()
    first.add(opening, turn=0, weight=1.0)
    done: list[_Telling] = []
    pieces: list[tuple[Labelled, Labelled]] = []  # of each turn: its action, what it drew
    row, known = first, tuple[int, ...]()
    for turn, own in enumerate(told.weights):
        shown = told.shown[turn] if told.shown else tuple(range(turn))
        if shown != known:
            done.append(row)
            row = _Telling()
            kept = [piece for earlier in shown for piece in pieces[earlier]]
            again = (*opening[0], *(token for ids, _ in kept for token in ids))
            row.add((again, (Source.PROMPT,) * len(again)), turn=turn, weight=0.0)
        known = (*shown, turn)
        pieces.append(_pieces(told, turn, chat=chat, role=role))
        row.add(pieces[-1][0], turn=turn, weight=own)
        row.add(pieces[-1][1], turn=turn, weight=1.0)
    return [each.row(number) for each in (*done, row)]


def _pieces(told: Demonstration, turn: int, *, chat: Chat, role: Role) -> tuple[Labelled, Labelled]:
    """The ids of a turn's action and of what it drew, each with their sources."""
    action, observation = told.turns[turn]
    last = turn == len(told.turns) - 1
    ended = last or role != "inline"  # the assistant's message ends here
    ids = (*chat.encode(action), *([chat.eos] if ended else []))
    drawn: Labelled = ((), ()) if last else chat.observation(observation, role, ended=ended)
    return (ids, (Source.POLICY,) * len(ids)), drawn


class _Telling:
    """A row that grows piece by piece."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._sources: list[int] = []
        self._turns: list[int] = []
        self._weight: list[float] = []

    def add(self, piece: Labelled, *, turn: int, weight: float) -> None:
        """`weight`: of its actions, and whether its other tokens weigh anything."""
        ids, sources = piece
        self._ids += ids
        self._sources += sources
        self._turns += [turn] * len(ids)
        self._weight += [weight] * len(ids)

    def row(self, number: int) -> Row:
        return Row(
            ids=np.array(self._ids, dtype=np.int64),
            sources=np.array(self._sources, dtype=np.int8),
            turn_index=np.array(self._turns, dtype=np.int64),
            logp_rollout=np.zeros(len(self._ids), dtype=np.float32),
            weight=np.array(self._weight, dtype=np.float32),
            trajectory=number,
        )
