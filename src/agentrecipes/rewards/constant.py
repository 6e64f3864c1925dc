"""The same reward for every trajectory: a placeholder, and an offset inside combinations."""

from __future__ import annotations

import math
from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import View


@component("reward")
class Constant(Component):
    """`value`, whatever happened."""

    value: float = 1.0

    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    reads: ClassVar[frozenset[str]] = frozenset()

    def score(self, view: View) -> float:
        """The value."""
        return self.value
