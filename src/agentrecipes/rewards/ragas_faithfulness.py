"""Whether what was found bears the answer out, by RAGAS. https://docs.ragas.io."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import judging, ragas
from agentrecipes.rewards.protocol import Gives


@component("reward")
class RagasFaithfulness(Component):
    """The share of the answer's statements that follow from the observations.

    Null where nothing was found; 0 without an answer.

    The same as ``{name: ragas, metric: faithfulness}``; needs the extra ``ragas``.
    """

    judge: judging.JudgeOf  # who is asked
    contexts: Literal["all", "first"] = "all"  # which observations
    longest: Annotated[int, Field(ge=100)] = judging.LONGEST  # characters of each text

    metric: ClassVar[str] = "faithfulness"
    embeddings: ClassVar[None] = None
    range: ClassVar[tuple[float, float]] = ragas.RANGE
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"
    require: ClassVar = ragas.require
    score: ClassVar = ragas.score
