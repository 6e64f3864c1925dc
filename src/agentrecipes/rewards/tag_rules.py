"""Whether the policy's tags keep the rules of a published format."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.rewards import tags
from agentrecipes.rewards.protocol import Gives, View

MARKS = {"boxed": re.compile(r"\\boxed\s*\{.+\}", re.DOTALL), "bold": re.compile(r"\*\*.+?\*\*")}
Counts = tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]]


@component("reward")
class TagRules(Component):
    """1 if all of the rules hold that are written, else 0; looks at the policy's text alone.

    ARPO (2025, https://arxiv.org/abs/2507.19849) and Deep-DxSearch (2025,
    https://arxiv.org/abs/2508.15746) gate their rewards so. What the environment writes follows a
    call by itself, so that `observed` asks only whether the call drew anything.
    """

    paired: tuple[str, ...] = ()  # tags that are opened and closed in turn, once or more
    once: tuple[str, ...] = ()  # tags of which there is exactly one pair
    counts: Annotated[dict[str, Counts], Field(default_factory=dict)]  # tag → fewest and most pairs
    observed: tuple[str, ...] = ()  # tags that no turn may close without an observation
    answer_has: Literal["boxed", "bold"] | None = None  # what stands in the answer's tag

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"

    def rules(self, stage: Any) -> Iterable[Problem]:
        """There is a rule, and one that can hold."""
        if not (self.paired or self.once or self.counts or self.observed or self.answer_has):
            hint = "Write for example `once: [answer]`."
            yield Problem("missing_key", "", "tag_rules has no rule", hint)
        for tag, (fewest, most) in self.counts.items():
            if fewest > most:
                found = f"no number is at least {fewest} and at most {most}"
                yield Problem(
                    "contradiction", f"counts.{tag}", found, "Write the lesser one first."
                )

    def score(self, view: View) -> float:
        """0 or 1."""
        text = tags.written(view)
        holds = all(tags.is_paired(text, tag) for tag in (*self.paired, *self.once))
        holds &= all(tags.opened(text, tag) == 1 for tag in self.once)
        for tag, (fewest, most) in self.counts.items():
            pairs = tags.opened(text, tag)
            holds &= fewest <= pairs <= most and (not pairs or tags.is_paired(text, tag))
        for action, observation in zip(view.actions, view.observations, strict=True):
            calls = any(tags.closed(action, tag) for tag in self.observed)
            holds &= not calls or bool(observation.strip())
        if self.answer_has is not None:
            answers = tags.bodies(text, "answer")
            holds &= bool(answers) and MARKS[self.answer_has].search(answers[-1]) is not None
        return float(holds)
