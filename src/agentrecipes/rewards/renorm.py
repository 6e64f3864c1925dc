"""Rewards by turn that agree with the outcome. PPR (2025)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.algebra import Held, Range, hull, values, whole, whole_range
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Renorm(Component):
    """By turn: ``of + outcome - 1``, and the outcome alone on the last turn.

    A turn worth 0.6 is left 0.6 where the outcome is 1, and becomes -0.4 where it is 0, so that a
    failure never gets a positive reward for its turns. ReNorm of PPR (2025,
    https://arxiv.org/abs/2509.25598).
    """

    of: Held  # the process: a reward with one value for each turn
    outcome: Held  # what the whole is worth

    reads: ClassVar[frozenset[str]] = frozenset()  # those that it holds say what they read
    gives: ClassVar[Gives] = "turn"

    @property
    def held(self) -> tuple[Any, ...]:
        """The rewards inside."""
        return self.of, self.outcome

    @property
    def range(self) -> Range:
        """Of any turn."""
        (low, high), (least, most) = self.of.range, whole_range(self.outcome)
        return hull([(low + (least - 1.0), high + (most - 1.0)), (least, most)])

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The process has turns."""
        if getattr(self.of, "gives", "trajectory") != "turn":
            found = f"{self.of.part_name} gives one number, and no turn has one of its own"
            yield Problem("wrong_value", "of", found, "Hold a reward by turn, such as progress.")

    def score(self, view: View) -> list[float] | None:
        """One value for each turn; null where either reward is."""
        found = values(self.held, view)
        if found is None:
            return None
        process, outcome = found[0], whole(found[1])
        if not isinstance(process, list):
            return None
        return [*(turn + (outcome - 1.0) for turn in process[:-1]), *([outcome] * bool(process))]
