"""Whether the answer is one to the question, by RAGAS. https://docs.ragas.io."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards import judging, ragas
from agentrecipes.rewards.protocol import Gives


@component("reward")
class RagasAnswerRelevancy(Component):
    """The mean likeness of the question and of questions that are made from the answer.

    By `embeddings`; 0 for an answer that commits to nothing, and without an answer.

    The same as ``{name: ragas, metric: answer_relevancy}``; needs the extra ``ragas``.
    """

    judge: judging.JudgeOf  # who is asked
    embeddings: judging.JudgeOf  # who makes vectors: openai_embeddings, or a recording
    longest: Annotated[int, Field(ge=100)] = judging.LONGEST  # characters of each text

    metric: ClassVar[str] = "answer_relevancy"
    contexts: ClassVar[str] = "all"
    range: ClassVar[tuple[float, float]] = ragas.RANGE
    reads: ClassVar[frozenset[str]] = frozenset()
    gives: ClassVar[Gives] = "trajectory"
    require: ClassVar = ragas.require
    score: ClassVar = ragas.score
