"""Any metric of RAGAS by its name. https://docs.ragas.io."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component, suggest
from agentrecipes.errors import Problem
from agentrecipes.rewards import judging
from agentrecipes.rewards.protocol import Gives, View
from agentrecipes.rewards.ragas_bridge import library, measured

INPUTS: Mapping[str, tuple[str, ...]] = {
    "answer_accuracy": ("user_input", "response", "reference"),
    "answer_correctness": ("user_input", "response", "reference"),
    "answer_relevancy": ("user_input", "response"),
    "context_entity_recall": ("reference", "retrieved_contexts"),
    "context_precision": ("user_input", "reference", "retrieved_contexts"),
    "context_recall": ("user_input", "retrieved_contexts", "reference"),
    "context_relevance": ("user_input", "retrieved_contexts"),
    "context_utilization": ("user_input", "response", "retrieved_contexts"),
    "factual_correctness": ("response", "reference"),
    "faithfulness": ("user_input", "response", "retrieved_contexts"),
    "noise_sensitivity": ("user_input", "response", "reference", "retrieved_contexts"),
    "response_groundedness": ("response", "retrieved_contexts"),
}
"""What each metric is given; the names are RAGAS' own, written small."""

VECTORS = frozenset({"answer_relevancy", "answer_correctness"})


RANGE = (0.0, 1.0)


def require(part: Any) -> None:
    """Import what is needed.

    Raises:
        MissingExtra: RAGAS is not installed.
    """
    library()


def score(part: Any, view: View) -> float | None:
    """In [0, 1]; null as soon as one reply cannot be read.

    Raises:
        MissingExtra: RAGAS is not installed.
    """
    seen = [text.strip() for text in view.observations if text.strip()]
    seen = seen[:1] if part.contexts == "first" else seen
    texts: dict[str, Any] = {
        "user_input": view.task.question,
        "response": (view.answer or "").strip(),
        "reference": next(iter(view.task.gold_answers), ""),
        "retrieved_contexts": [text[: part.longest] for text in seen],
    }
    inputs = {key: texts[key] for key in INPUTS[part.metric]}
    if inputs.get("response") == "":
        return 0.0
    if not all(inputs.values()):
        return None
    value = measured(part.metric, inputs, judge=part.judge, embeddings=part.embeddings)
    return None if value is None else min(max(value, 0.0), 1.0)


@component("reward")
class Ragas(Component):
    """A metric of RAGAS 0.4 in [0, 1], asked of `judge`; needs the extra ``ragas``.

    The contexts are the observations that are not empty, the response is the answer, the reference
    the first gold answer. Null where one of these is missing, and as soon as one reply of the judge
    cannot be read; 0 for a trajectory without an answer where the metric is about the answer.
    """

    judge: judging.JudgeOf  # who is asked
    metric: str  # answer_accuracy, context_relevance, faithfulness, ...
    embeddings: judging.JudgeOf | None = (
        None  # who makes vectors, for metrics that compare meanings
    )
    contexts: Literal["all", "first"] = "all"  # which observations
    longest: Annotated[int, Field(ge=100)] = judging.LONGEST  # characters of each text

    range: ClassVar[tuple[float, float]] = RANGE
    gives: ClassVar[Gives] = "trajectory"
    require: ClassVar = require
    score: ClassVar = score

    @property
    def reads(self) -> frozenset[str]:
        """Gold answers, for metrics with a reference."""
        wanted = INPUTS.get(self.metric, ())
        return frozenset({"golden_answers"} if "reference" in wanted else ())

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The metric is one of those that fit a trajectory, and has what it needs."""
        if self.metric not in INPUTS:
            found = f"no metric of RAGAS that fits a trajectory is called {self.metric!r}"
            yield Problem("wrong_value", "metric", found, suggest(self.metric, INPUTS))
        elif self.metric in VECTORS and self.embeddings is None:
            hint = "Write `embeddings: {name: openai_embeddings, model: …, base_url: …}`."
            yield Problem("missing_key", "", f"{self.metric} needs 'embeddings'", hint)
        elif self.metric not in VECTORS and self.embeddings is not None:
            found = f"embeddings has no effect on {self.metric}"
            yield Problem("no_effect", "embeddings", found, "Leave it out.")
