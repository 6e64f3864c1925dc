"""What the environment itself gave."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Environment(Component):
    """By turn: the environment's own reward, from `low` to `high`.

    ``tools`` gives its `call_rewards`; these are the process rewards of Agent-R1 (Cheng et al.
    2025, https://arxiv.org/abs/2511.14460), beside a reward for the answer. Null where text was
    written and nothing was played.
    """

    low: float = -1.0  # a turn's reward outside of the two is a null
    high: float = 1.0

    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "turn"

    @property
    def range(self) -> tuple[float, float]:
        """As the recipe says."""
        return self.low, self.high

    def score(self, view: View) -> list[float] | None:
        """One value a turn."""
        return None if view.rewards is None else list(view.rewards)
