"""Points for tags. Agentic-RAG-R1 (2025, https://github.com/jiangxinke/Agentic-RAG-R1)."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import tags
from agentrecipes.rewards.protocol import Gives, View

Points = Annotated[float, Field(ge=0.0)]


@component("reward")
class TagPoints(Component):
    """`each` for every opening and closing tag of `present`; points for searches; one answer.

    Of p search pairs, min(opened, closed), the first `most_pairs` earn `pair`; where there are more
    each one beyond costs `pair` and nothing is earned. Exactly one answer pair earns `answered`.
    What pays for mere presence is written for nothing: keep its share small.
    """

    present: tuple[str, ...] = ("reasoning", "backtrack", "summary")
    each: Points = 0.2  # of an opening tag, and of a closing one
    search: str = "search"  # the tag whose pairs are counted
    pair: Points = 0.2
    most_pairs: Annotated[int, Field(ge=0)] = 3
    answered: Points = 0.4  # for exactly one pair of the answer's tag

    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    @property
    def range(self) -> tuple[float, float]:
        """Without a lower bound where searches can cost something."""
        most = [self.each] * (2 * len(self.present)) + [self.pair] * self.most_pairs
        return (-math.inf if self.pair else 0.0), math.fsum([*most, self.answered])

    def score(self, view: View) -> float:
        """The sum of points; looks at the policy's text alone."""
        text = tags.written(view)
        points = []
        for tag in self.present:
            points += [self.each] * (tags.opened(text, tag) > 0)
            points += [self.each] * (tags.closed(text, tag) > 0)
        pairs = min(tags.opened(text, self.search), tags.closed(text, self.search))
        beyond = pairs - self.most_pairs
        points += [-self.pair] * beyond if beyond > 0 else [self.pair] * pairs
        once = tags.opened(text, "answer") == 1 == tags.closed(text, "answer")
        return math.fsum([*points, self.answered * once])
