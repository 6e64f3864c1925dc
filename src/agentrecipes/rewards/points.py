"""What each turn added to the score of a game."""

from __future__ import annotations

import re
from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View

SCORE = re.compile(r"^Score: (\d+) of (\d+)$", re.MULTILINE)
WON = "won"


@component("reward")
class Points(Component):
    """By turn: the points that its observation tells of, as a share of the most there are.

    Read are the lines ``Score: 1 of 3`` that the environment ``textworld`` writes; a game that is
    won has them all. The sum over turns is in [-1, 1], and 1 for a game that is won: the dense
    reward of meow-tea-taro (2025, https://arxiv.org/abs/2510.01132), whose sum is the sparse one.
    Null where no observation tells a score and the game is not won.
    """

    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "turn"

    def score(self, view: View) -> list[float] | None:
        """One value a turn; a turn that tells no score adds nothing."""
        won = view.answer == WON
        if not won and not any(SCORE.search(text) for text in view.observations):
            return None
        gains, before = [], 0.0
        for place, text in enumerate(view.observations):
            told = SCORE.findall(text)
            now = min(1.0, int(told[-1][0]) / max(1, int(told[-1][1]))) if told else before
            now = 1.0 if won and place == len(view.observations) - 1 else now
            gains.append(now - before)
            before = now
        return gains
