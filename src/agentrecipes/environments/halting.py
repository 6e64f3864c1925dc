"""When an answer counts: not before so many actions, and not while the policy is unsure of it.

After TC-RAG (Jiang et al. 2025, https://arxiv.org/abs/2408.09199), which takes a final answer for
one more thought unless four actions were taken and the state, the summed entropy of its tokens, is
below 1.2. Here the state is made of the log-probabilities of the tokens that were sampled, which
are stored anyway: their negative sum has the summed entropy as its mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import Fields
from agentrecipes.errors import Problem
from agentrecipes.records import Action


class Halting(Fields):
    """An answer that does not count draws the note, and the episode goes on.

    On the last turn every answer counts: there is nothing left to think about it.
    """

    least_actions: Annotated[int, Field(ge=0)] = 0  # turns with calls that must come before
    uncertainty: Annotated[float, Field(gt=0.0)] | None = None  # the state must be below; null: any
    state: Literal["surprise", "perplexity"] = "surprise"  # -Σ log p in nats, or exp(mean -log p)
    note: Annotated[str, Field(min_length=1)] = "This answer does not count yet. Go on."

    def refuses(self, before: Sequence[Action], logp: Sequence[float]) -> bool:
        """Whether an answer after the actions `before` does not count.

        `logp` are its turn's, in nats; without any, as where it was written and not sampled, the
        state is not asked for.
        """
        if sum(bool(action.calls) for action in before) < self.least_actions:
            return True
        if self.uncertainty is None or not logp:
            return False
        return self.measured(logp) >= self.uncertainty

    def measured(self, logp: Sequence[float]) -> float:
        """The state of a turn: the lower, the surer the policy was. At least one value."""
        surprise = -math.fsum(logp)
        return surprise if self.state == "surprise" else math.exp(surprise / len(logp))


def halting_problems(environment: Any) -> Iterable[Problem]:
    """A rule that leaves no turn for an answer but the last, and a state that nobody asks for."""
    rule: Halting = environment.halting
    least, turns = rule.least_actions, environment.max_turns
    if rule.uncertainty is None and rule.state != "surprise":
        found, hint = "a state without a bound", "Write `uncertainty: 1.2`, or leave it out."
        yield Problem("no_effect", "halting.state", found, hint)
    if least >= turns:
        yield Problem(
            code="contradiction",
            path="halting.least_actions",
            message=f"{least} actions before an answer leave none of {turns} turns for it",
            suggestion=f"Write at most {turns - 1}, or more `max_turns`.",
        )
