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
from agentrecipes.environments.context import memory_call
from agentrecipes.environments.protocol import Agent
from agentrecipes.errors import Problem
from agentrecipes.records import Action, Call


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


def patient(environment: Any, agent: Agent) -> Agent:
    """`agent`, which makes its last calls again until its answer counts."""
    rule: Halting = getattr(environment, "halting", Halting())
    return _Patient(agent, rule.least_actions) if rule.least_actions else agent


class _Patient:
    """Keeps an answer until enough turns with calls came before it."""

    def __init__(self, agent: Agent, least: int) -> None:
        self._agent, self._left = agent, least
        self._calls: tuple[Call, ...] = ()  # the last ones that edited nothing
        self._answer: Action | None = None

    def __call__(self, observation: str | None) -> Action:
        said = self._answer or self._agent(observation)
        if said.answer is None:
            self._left -= bool(said.calls)
            self._calls = said.calls if memory_call(said) is None else self._calls
            return said
        if self._left <= 0 or not self._calls:
            return said
        self._answer = said
        self._left -= 1
        return Action(said.thought, self._calls)
