"""What each turn brought nearer."""

from __future__ import annotations

from typing import ClassVar

from agentrecipes.components import Component, component
from agentrecipes.rewards.evidence import FIELDS, Needed, needed, shown
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Progress(Component):
    """By turn: the share of what is needed that its observation shows for the first time.

    ``supporting``: of three supporting passages, a turn that finds two gets 2/3 and one that finds
    them again 0. ``gold``: 1 for the first turn that shows a gold answer. The sum over turns is in
    [0, 1], so that searching on does not pay. A supporting passage is known by its title
    (``supporting_titles`` of the task), which counts where another passage mentions it too. Null
    without titles, or gold answers.
    """

    of: Needed = "supporting"

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    gives: ClassVar[Gives] = "turn"

    @property
    def reads(self) -> frozenset[str]:
        """What it looks for."""
        return frozenset({FIELDS[self.of]})

    def score(self, view: View) -> list[float] | None:
        """One value a turn; looks at observations alone."""
        texts = needed(view.task, self.of)
        if not texts:
            return None
        seen: set[str] = set()
        gains = []
        for observation in view.observations:
            new = shown(observation, texts) - seen
            first = bool(new) and not seen
            gains.append(float(first) if self.of == "gold" else len(new) / len(texts))
            seen |= new
        return gains
