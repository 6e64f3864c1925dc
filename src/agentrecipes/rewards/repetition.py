"""What is said again costs."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards.protocol import Gives, View

WORDS = 4


@component("reward")
class Repetition(Component):
    """Minus the share of repetitions: distinct / all - 1, of runs of `size` words or of calls.

    Runs of words lie within a turn and are compared over all turns, in small letters; after Yeo
    et al. 2025 (https://arxiv.org/abs/2502.03373), who count runs too. 0 where nothing is long
    enough to be repeated.
    """

    of: Literal["words", "calls"] = "words"  # calls: same tool and arguments
    size: Annotated[int, Field(ge=1)] = WORDS  # words of a run

    range: ClassVar[tuple[float, float]] = (-1.0, 0.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def rules(self, stage: Any) -> Iterable[Problem]:
        """Calls have no size."""
        if self.of == "calls" and self.size != WORDS:
            yield Problem("no_effect", "size", "size has no effect on calls", "Leave it out.")

    def score(self, view: View) -> float:
        """In (-1, 0]; looks at the policy's own text alone."""
        said = self._calls(view) if self.of == "calls" else self._runs(view)
        return len(set(said)) / len(said) - 1.0 if said else 0.0

    def _runs(self, view: View) -> list[Hashable]:
        runs: list[Hashable] = []
        for action in view.actions:
            words = action.lower().split()
            runs += [tuple(words[i : i + self.size]) for i in range(len(words) - self.size + 1)]
        return runs

    def _calls(self, view: View) -> list[Hashable]:
        return [
            (call.tool, json.dumps(dict(call.arguments), sort_keys=True, default=str))
            for turn in view.calls
            for call in turn
        ]
