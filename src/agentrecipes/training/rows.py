"""Trajectories and demonstrations as rows of labelled tokens (laws 1 and 2).

A turn whose prompt goes on where the row ended joins it; a turn whose context was edited starts a
new row. Nothing is tokenised here and no mask is searched for: every token brings its source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from agentrecipes.records import Source, Trajectory, Turn


@dataclass(frozen=True, slots=True)
class Row:
    """T tokens in the order in which the policy saw them.

    Example: ``picture()`` of prompt ``1 2``, action ``7 8``, observation ``5``, action ``9`` is
    ``1 2 [7] [8] 5 [9]``: what is trained on stands in brackets.
    """

    ids: np.ndarray  # (T,) int64
    sources: np.ndarray  # (T,) int8, see records.Source
    turn_index: np.ndarray  # (T,) int64, turn that the token belongs to
    logp_rollout: np.ndarray  # (T,) float32, 0 off the actions
    weight: np.ndarray  # (T,) float32, loss weight for algorithms that read data
    trajectory: int  # whose row this is
    segment: np.ndarray = field(
        default_factory=lambda: np.zeros(0, dtype=np.int8)
    )  # (T,) int8: 1 a thought, 2 what is balanced with it, 0 neither; or (0,)
    group: int | None = None  # whose rows all stay in one micro-batch; null: the trajectory's do

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def action_mask(self) -> np.ndarray:
        """(T,) bool, True on policy tokens."""
        mask: np.ndarray = self.sources == Source.POLICY
        return mask

    def cut(self, tokens: int) -> Row:
        """The row's first `tokens`."""
        return replace(
            self,
            ids=self.ids[:tokens],
            sources=self.sources[:tokens],
            turn_index=self.turn_index[:tokens],
            logp_rollout=self.logp_rollout[:tokens],
            weight=self.weight[:tokens],
            segment=self.segment[:tokens],
        )

    def picture(self) -> str:
        """The tokens, policy tokens in brackets."""
        pairs = zip(self.ids, self.action_mask, strict=True)
        return " ".join(f"[{token}]" if mine else str(token) for token, mine in pairs)


class _Builder:
    """A row that grows turn by turn."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.sources: list[int] = []
        self.turns: list[int] = []
        self.logp: list[float] = []

    def add(
        self, ids: Sequence[int], sources: Sequence[int], turn: int, *, logp: Sequence[float] = ()
    ) -> None:
        self.ids += ids
        self.sources += sources
        self.turns += [turn] * len(ids)
        self.logp += logp or [0.0] * len(ids)

    def row(self, trajectory: int) -> Row:
        return Row(
            ids=np.array(self.ids, dtype=np.int64),
            sources=np.array(self.sources, dtype=np.int8),
            turn_index=np.array(self.turns, dtype=np.int64),
            logp_rollout=np.array(self.logp, dtype=np.float32),
            weight=np.array([float(s == Source.POLICY) for s in self.sources], dtype=np.float32),
            trajectory=trajectory,
        )


def rows(turns: Sequence[Turn], trajectory: int = 0) -> list[Row]:
    """The rows of one trajectory; more than one where its context was edited."""
    done: list[Row] = []
    open_row: _Builder | None = None
    for number, turn in enumerate(turns):
        if open_row is not None and not _extends(turn.prompt, open_row.ids):
            done.append(open_row.row(trajectory))
            open_row = None
        if open_row is None:
            open_row = _Builder()
            open_row.add(turn.prompt, turn.prompt_sources, number)
        else:
            start = len(open_row.ids)
            open_row.add(turn.prompt[start:], turn.prompt_sources[start:], number)
        open_row.add(
            turn.action, [Source.POLICY] * len(turn.action), number, logp=turn.logp_rollout
        )
        open_row.add(turn.observation, turn.observation_sources, number)
    return [*done, open_row.row(trajectory)] if open_row is not None else []


def _extends(prompt: Sequence[int], ids: Sequence[int]) -> bool:
    return len(prompt) >= len(ids) and list(prompt[: len(ids)]) == list(ids)


def trajectory_rows(trajectories: Sequence[Trajectory], *, whole_groups: bool = False) -> list[Row]:
    """All rows of N trajectories; those of one trajectory stand together, or those of one group."""
    found = [row for n, each in enumerate(trajectories) for row in rows(each.turns, n)]
    if not whole_groups:
        return found
    names = {name: n for n, name in enumerate(dict.fromkeys(t.group for t in trajectories))}
    return [replace(row, group=names[trajectories[row.trajectory].group]) for row in found]
