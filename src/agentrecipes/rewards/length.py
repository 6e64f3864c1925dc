"""Soft punishment of overlong trajectories. DAPO, Yu et al. 2025, eq. 13.

https://arxiv.org/abs/2503.14476
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.protocol import Gives, View, most_tokens

SHARE = 5  # the paper's buffer is a fifth of its limit: 4096 of 20480


@component("reward")
class Length(Component):
    """0 up to `max` - `buffer`, then falling in a line to -1 at `max`, and -1 beyond.

    What is counted is what the policy wrote in all turns, not the prompt and not observations: its
    sampled tokens, or words or characters of its text. A trajectory that was sampled has tokens. A
    written transcript has them only if its turns say ``tokens``: null otherwise, never a guess.
    """

    max: Annotated[int, Field(ge=1)] | None = (
        None  # from here on the reward is -1; null: all that the policy can write in its turns
    )
    buffer: Annotated[int, Field(ge=1)] | None = (
        None  # how long before `max` the reward begins to fall; null: a fifth of it (the paper's)
    )
    count: Literal["tokens", "words", "characters"] = "tokens"  # what the policy wrote, in these

    range: ClassVar[tuple[float, float]] = (-1.0, 0.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The buffer lies below `max`, and a trajectory can be long enough to reach it."""
        most = most_tokens(stage)
        if self.max is None and self.count != "tokens":
            found = f"only tokens have a limit of their own: nothing says how many {self.count}"
            yield Problem("missing_key", "", found, "Write `max`, or `count: tokens`.")
            return
        start, end = self._bounds(most)
        if start < 0:
            found = f"a buffer of {self.buffer} does not fit below max: {end}"
            yield Problem("contradiction", "buffer", found, f"Write at most {end}.")
        needs = getattr(stage.algorithm, "needs", None)
        scores = not getattr(needs, "demonstrations", False)  # a stage that reads data does not
        if scores and self.count == "tokens" and start >= most:
            found = (
                f"length has no effect: it begins at {start} tokens, "
                f"and the policy can write {most} in a trajectory"
            )
            hint = "Leave `max` out: then it is what tokens_per_turn and max_turns allow."
            yield Problem("no_effect", "max", found, hint, severity="warning")

    def score(self, view: View) -> float | None:
        """In [-1, 0]; null where tokens are to be counted and there are none, or without `max`."""
        length = self._length(view)
        if length is None or (self.max is None and view.most_tokens is None):
            return None
        start, end = self._bounds(view.most_tokens or 0)
        return -min(max(length - start, 0) / (end - start), 1.0) or 0.0  # no negative zero

    def _bounds(self, most: int) -> tuple[int, int]:
        """Where the reward begins to fall, and where it is -1."""
        end = most if self.max is None else self.max
        return end - (max(end // SHARE, 1) if self.buffer is None else self.buffer), end

    def _length(self, view: View) -> int | None:
        if self.count == "tokens":
            return None if view.tokens is None else sum(view.tokens)
        if self.count == "words":
            return sum(len(action.split()) for action in view.actions)
        return sum(map(len, view.actions))
