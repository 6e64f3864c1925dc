"""Whether what was needed was found. Search-R1 v0.3 (2025, https://arxiv.org/abs/2503.09516)."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.evidence import FIELDS, Needed, needed, shown
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class RetrievalHit(Component):
    """``gold``: 1 if an observation shows a gold answer, else 0. ``supporting``: the share shown.

    A supporting passage is known by its title (``supporting_titles`` of the task), which counts
    where another passage mentions it too. Both are compared after normalisation and as whole words,
    where Search-R1 takes parts of words too. Null without gold answers, or titles.
    """

    of: Needed = "gold"

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    gives: ClassVar[Gives] = "trajectory"

    @property
    def reads(self) -> frozenset[str]:
        """What it looks for."""
        return frozenset({FIELDS[self.of]})

    def score(self, view: View) -> float | None:
        """In [0, 1]; looks at observations alone, so that a policy cannot write its own hit."""
        texts = needed(view.task, self.of)
        if not texts:
            return None
        seen = set().union(*(shown(observation, texts) for observation in view.observations))
        return float(bool(seen)) if self.of == "gold" else len(seen) / len(texts)
