"""Whether what was found bears on the question, by RAGAS. https://docs.ragas.io."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import judging, ragas
from agentrecipes.rewards.protocol import Gives


@component("reward")
class RagasContextRelevance(Component):
    """Two prompts give 0, 1 or 2 each; half of their mean. Null where nothing was found.

    The same as ``{name: ragas, metric: context_relevance}``; needs the extra ``ragas``.
    """

    judge: judging.JudgeOf  # who is asked
    contexts: Literal["all", "first"] = "first"  # which observations
    longest: Annotated[int, Field(ge=100)] = judging.LONGEST  # characters of each text

    metric: ClassVar[str] = "context_relevance"
    embeddings: ClassVar[None] = None
    range: ClassVar[tuple[float, float]] = ragas.RANGE
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"
    require: ClassVar = ragas.require
    score: ClassVar = ragas.score
