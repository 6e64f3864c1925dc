"""What a judge may cost, and what it has cost so far in this process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import Fields
from agentrecipes.errors import TaskFailed

MILLION = 1_000_000


class Budget(Fields):
    """Limits on what a judge costs; what is asked beyond them has no reply, and so no value."""

    calls: Annotated[int, Field(ge=1)] | None = None  # most requests, retries included
    tokens: Annotated[int, Field(ge=1)] | None = None  # most tokens, prompts included
    cost: Annotated[float, Field(gt=0.0)] | None = None  # most money, by the prices below
    prompt_price: Annotated[float, Field(ge=0.0)] = 0.0  # of a million prompt tokens
    reply_price: Annotated[float, Field(ge=0.0)] = 0.0  # of a million tokens of replies


class Purse:
    """What has been spent of a budget. Requests on their way may overshoot tokens and cost."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.calls = 0
        self.tokens = 0
        self.cost = 0.0

    def take_call(self) -> None:
        """Count a request that is about to be sent.

        Raises:
            TaskFailed: the budget is spent.
        """
        limits = (("calls", self.calls), ("tokens", self.tokens), ("cost", self.cost))
        for name, spent in limits:
            limit = getattr(self._budget, name)
            if limit is not None and spent >= limit:
                raise TaskFailed(f"the judge's budget is spent: {name} {limit:g}")
        self.calls += 1

    def pay(self, usage: Mapping[str, Any]) -> None:
        """Count what a reply has used, as the server says."""
        prompt, reply = (_whole(usage.get(f"{of}_tokens")) for of in ("prompt", "completion"))
        self.tokens += prompt + reply
        prices = prompt * self._budget.prompt_price + reply * self._budget.reply_price
        self.cost += prices / MILLION


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0
