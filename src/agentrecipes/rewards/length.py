"""Soft punishment of overlong trajectories. DAPO, Yu et al. 2025, eq. 13.

https://arxiv.org/abs/2503.14476
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.protocol import Gives, View


@component("reward")
class Length(Component):
    """0 up to `max` - `buffer`, then falling in a line to -1 at `max`, and -1 beyond.

    What is counted is what the policy wrote in all turns, not the prompt and not observations: its
    sampled tokens, or words or characters of its text. A trajectory that was sampled has tokens. A
    written transcript has them only if its turns say ``tokens``: null otherwise, never a guess.
    """

    max: Annotated[int, Field(ge=1)] = 20480  # from here on the reward is -1
    buffer: Annotated[int, Field(ge=1)] = 4096  # how long before `max` the reward begins to fall
    count: Literal["tokens", "words", "characters"] = "tokens"  # what the policy wrote, in these

    range: ClassVar[tuple[float, float]] = (-1.0, 0.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The buffer lies below `max`, and a trajectory can be long enough to reach it."""
        if self.buffer > self.max:
            found = f"a buffer of {self.buffer} does not fit below max: {self.max}"
            yield Problem("contradiction", "buffer", found, f"Write at most {self.max}.")
        most = stage.rollout.tokens
        needs = getattr(stage.algorithm, "needs", None)
        scores = not getattr(needs, "demonstrations", False)  # a stage that reads data does not
        if scores and self.count == "tokens" and self.max - self.buffer >= most:
            found = (
                f"length has no effect: it begins at {self.max - self.buffer} tokens, "
                f"and rollout.tokens ends a trajectory at {most}"
            )
            yield Problem("no_effect", "max", found, "Write for example `max`: rollout.tokens.")

    def score(self, view: View) -> float | None:
        """In [-1, 0]; null where tokens are to be counted and there are none."""
        length = self._length(view)
        if length is None:
            return None
        over = length - (self.max - self.buffer)
        return -min(max(over, 0) / self.buffer, 1.0) or 0.0  # no negative zero

    def _length(self, view: View) -> int | None:
        if self.count == "tokens":
            return None if view.tokens is None else sum(view.tokens)
        if self.count == "words":
            return sum(len(action.split()) for action in view.actions)
        return sum(map(len, view.actions))
