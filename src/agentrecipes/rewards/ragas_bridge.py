"""RAGAS' metrics with this package's judges: the one door to ``ragas``.

A metric asks its language model through a judge, so that limits, cache, recording and counting are
the judge's; what it cannot read is a null, where RAGAS would average what is left.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from agentrecipes.errors import MissingExtra
from agentrecipes.judges.asking import ask
from agentrecipes.judges.fence import harmless
from agentrecipes.records import Judgement

PACKAGE = "ragas==0.4.3 langchain-community==0.4.1"
FENCED = re.compile(r"```(?:json)?\s*(.*?)```", re.DOTALL)
MOST_ASKED = 1  # times a metric repeats a question whose reply it cannot use


def class_name(metric: str) -> str:
    """``context_relevance`` as RAGAS calls its class, ContextRelevance."""
    return "".join(word.capitalize() for word in metric.split("_"))


@lru_cache
def library() -> Any:
    """The module of metrics.

    Raises:
        MissingExtra: RAGAS is not installed, or with a companion that it does not work with.
    """
    os.environ.setdefault("RAGAS_DO_NOT_TRACK", "true")
    try:
        from ragas.metrics import collections  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise MissingExtra(
            f"RAGAS cannot be imported ({error}). Install it: pip install {PACKAGE}"
        ) from error
    return collections


def measured(
    metric: str, inputs: Mapping[str, Any], *, judge: Any, embeddings: Any
) -> float | None:
    """The metric's value; None where a reply could not be read or the metric has none.

    Raises:
        MissingExtra: RAGAS is not installed.
        KeyError: RAGAS has no such metric.
    """
    said: list[Judgement] = []
    made = _made(metric, _model(judge, said), _vectors(embeddings, said))
    try:
        found = asyncio.run(made.ascore(**inputs)).value
    except _Unread:
        return None
    if any(each.value is None for each in said) or found is None or found != found:
        return None
    return float(found)


def _made(metric: str, model: Any, vectors: Any) -> Any:
    import inspect

    kind = getattr(library(), class_name(metric), None)
    if kind is None:
        raise KeyError(metric)
    known = inspect.signature(kind.__init__).parameters
    given = {"llm": model, "embeddings": vectors, "max_retries": MOST_ASKED}
    return kind(**{key: value for key, value in given.items() if key in known})


class _Unread(Exception):
    """A reply has no value: the metric cannot go on."""


@lru_cache
def _bridges() -> tuple[Any, Any]:
    """RAGAS' model and embeddings, made of judges; classes of its own, so made when it is there."""
    library()
    from ragas.embeddings.base import BaseRagasEmbedding
    from ragas.llms.base import InstructorBaseRagasLLM

    class Model(InstructorBaseRagasLLM):  # type: ignore[misc, unused-ignore]
        def __init__(self, judge: Any, said: list[Judgement]) -> None:
            self._judge, self._said = judge, said

        def generate(self, prompt: str, response_model: Any) -> Any:
            [reply] = ask(
                self._judge, [harmless(prompt)], lambda text: _reads(text, response_model)
            )
            self._said.append(reply)
            if reply.value is None or reply.reply is None:
                raise _Unread(reply.problem)
            return response_model.model_validate_json(_json(reply.reply))

        async def agenerate(self, prompt: str, response_model: Any) -> Any:
            return self.generate(prompt, response_model)

    class Vectors(BaseRagasEmbedding):  # type: ignore[misc, unused-ignore]
        def __init__(self, judge: Any, said: list[Judgement]) -> None:
            super().__init__()
            self._judge, self._said = judge, said

        def embed_text(self, text: str, **kwargs: Any) -> list[float]:
            [reply] = ask(self._judge, [text], _is_vector)
            self._said.append(reply)
            if reply.value is None or reply.reply is None:
                raise _Unread(reply.problem)
            return list(map(float, json.loads(reply.reply)))

        async def aembed_text(self, text: str, **kwargs: Any) -> list[float]:
            return self.embed_text(text)

    return Model, Vectors


def _model(judge: Any, said: list[Judgement]) -> Any:
    return _bridges()[0](judge, said)


def _vectors(judge: Any, said: list[Judgement]) -> Any:
    return None if judge is None else _bridges()[1](judge, said)


def _json(reply: str) -> str:
    """The JSON of a reply: all of it, or what stands in a block of code."""
    block = FENCED.search(reply)
    return (block[1] if block else reply).strip()


def _reads(reply: str, model: Any) -> float | None:
    try:
        model.model_validate_json(_json(reply))
    except ValueError:
        return None
    return 1.0


def _is_vector(reply: str) -> float | None:
    try:
        numbers = json.loads(reply)
    except ValueError:
        return None
    right = isinstance(numbers, list) and numbers and all(type(n) in (int, float) for n in numbers)
    return 1.0 if right else None
