"""Several criteria, each judged by itself."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from agentrecipes.components import Component, Fields, component
from agentrecipes.errors import Problem
from agentrecipes.judges.asking import ask
from agentrecipes.judges.fence import filled, places
from agentrecipes.rewards import judging
from agentrecipes.rewards.judge import YES
from agentrecipes.rewards.protocol import Gives, View


class Criterion(Fields):
    """One thing to look for; in YAML its text alone will do."""

    text: Annotated[str, Field(min_length=1)]
    weight: Annotated[float, Field(gt=0.0)] = 1.0

    @model_validator(mode="before")
    @classmethod
    def _short(cls, data: Any) -> Any:
        return {"text": data} if isinstance(data, str) else data


@component("reward")
class Rubric(Component):
    """The weighted share of `criteria` that are met, each asked for in a prompt of its own.

    Null as soon as one reply cannot be read: a share of fewer criteria would be another reward.
    """

    judge: judging.JudgeOf  # who is asked
    criteria: Annotated[tuple[Criterion, ...], Field(min_length=1)]
    prompt: judging.Prompt = "criterion"  # as of `judge`, with {criterion} in it
    longest: judging.Longest = judging.LONGEST  # characters of each text that the judge is shown

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    gives: ClassVar[Gives] = "trajectory"

    @property
    def template(self) -> str:
        """The prompt with its places."""
        return judging.template(self.prompt)

    @property
    def _shown(self) -> list[str]:
        return [name for name in places(self.template) if name != "criterion"]

    @property
    def reads(self) -> frozenset[str]:
        """What the prompt shows of a task."""
        return judging.read_fields(self._shown)

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The prompt shows the criterion and what is judged."""
        yield from judging.prompt_problems(self.template, frozenset({"criterion"}))

    def score(self, view: View) -> float | None:
        """In [0, 1]; a trajectory without the answer that is to be shown is worth 0."""
        if not judging.is_shown_everything(view, self._shown):
            return None
        if not (view.answer or "").strip() and "answer" in self._shown:
            return 0.0
        given = judging.texts(view)
        prompts = [
            filled(
                self.template.replace("{criterion}", each.text.replace("{", "(").replace("}", ")")),
                given,
                longest=self.longest,
            )
            for each in self.criteria
        ]
        said = ask(self.judge, prompts, partial(judging.verdict, values=YES))
        met = [judgement.value for judgement in said]
        if None in met:
            return None
        weights = [each.weight for each in self.criteria]
        shares = zip(weights, met, strict=True)
        return math.fsum(weight * (value or 0.0) for weight, value in shares) / math.fsum(weights)
