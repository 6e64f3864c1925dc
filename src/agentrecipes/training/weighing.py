"""What each token of a demonstration weighs in the loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from agentrecipes.demonstrations.protocol import Demonstration
from agentrecipes.records import Source, Trajectory
from agentrecipes.rollout.chat import Chat
from agentrecipes.training.rows import Row

THOUGHT, REST = 1, 2  # segments, see Batch.segment
THOUGHT_END = "</think>"  # of what was collected


@dataclass(frozen=True, slots=True)
class Weighing:
    """Weights of a demonstration's tokens, see the fields of ``sft``."""

    observation_weight: float = 0.0
    balance: float | None = None
    thought_end: str = "</think>"

    @classmethod
    def of(cls, algorithm: Any) -> Weighing:
        """As the fields of an algorithm say, those that it has."""
        names = [each.name for each in fields(cls) if hasattr(algorithm, each.name)]
        given = {name: getattr(algorithm, name) for name in names}
        given["balance"] = getattr(given.get("balance"), "start", given.get("balance"))
        return cls(**given)

    def thoughts(self, row: Row, told: Demonstration, chat: Chat) -> np.ndarray:
        """(T,) bool, True on the tokens of thoughts; nowhere where nobody asks for them."""
        if self.balance is None:
            return np.zeros(len(row), dtype=bool)
        return thought_mask(row, told, chat=chat, end=self.thought_end)

    def weighted(self, row: Row, thought: np.ndarray) -> Row:
        """The row of a demonstration with its weights; `row` holds those of its turns."""
        own = np.where(row.action_mask, row.weight, 0.0)
        if self.balance is None:
            others = self.observation_weight * (row.weight > 0)  # none on what is shown again
            weight = np.where(row.sources == Source.POLICY, own, others)
            return replace(row, weight=weight.astype(np.float32))
        shares = [(self.balance, own * thought), (1.0 - self.balance, own * ~thought)]
        found = [(share, part / part.sum()) for share, part in shares if part.sum() > 0]
        alone = len(found) == 1
        weight = sum((part if alone else share * part for share, part in found), np.zeros(len(row)))
        segment = (own > 0) * (0 if alone else np.where(thought, THOUGHT, REST))
        return replace(row, weight=weight.astype(np.float32), segment=segment.astype(np.int8))


def segmented(rows: Sequence[Row], trajectories: Sequence[Trajectory], chat: Chat) -> list[Row]:
    """The rows of what was collected, each action token a thought or the rest of its turn."""
    made = []
    for row in rows:
        turns = trajectories[row.trajectory].turns
        told = tuple((turn.action_text, "") for turn in turns)
        said = Demonstration(trajectories[row.trajectory].task, (), told, (1.0,) * len(turns))
        thought = thought_mask(row, said, chat=chat, end=THOUGHT_END)
        segment = row.action_mask * np.where(thought, THOUGHT, REST)
        made.append(replace(row, segment=segment.astype(np.int8)))
    return made


def thought_mask(row: Row, told: Demonstration, *, chat: Chat, end: str) -> np.ndarray:
    """(T,) bool, True on the action tokens up to the last `end` of their turn, itself included.

    A token that reaches beyond `end` is none of them.
    """
    mask = np.zeros(len(row), dtype=bool)
    for turn, (action, _) in enumerate(told.turns):
        before, found, _ = action.rpartition(end)
        places = np.flatnonzero(row.action_mask & (row.turn_index == turn))
        ids, wanted = row.ids[places].tolist(), chat.encode(before + found)
        pairs = zip(ids, wanted, strict=False)
        common = next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(ids), len(wanted)))
        mask[places[:common]] = True
    return mask
