"""The same reward for every trajectory: a placeholder, and an offset inside combinations."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Constant(Component):
    """`value`, whatever happened."""

    value: float = 1.0

    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    @property
    def range(self) -> tuple[float, float]:
        """The value alone."""
        return self.value, self.value

    def score(self, view: View) -> float:
        """The value."""
        return self.value
