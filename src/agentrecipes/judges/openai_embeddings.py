"""Texts as vectors, by a server that speaks OpenAI's protocol."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.errors import Problem
from agentrecipes.judges import line
from agentrecipes.judges.spending import Budget


@component("judge")
class OpenAIEmbeddings(Component):
    """Asks ``POST {base_url}/embeddings``; a reply is the vector as JSON.

    For rewards that compare meanings, such as RAGAS' answer relevancy; it is limited, retried and
    kept as the judge `openai` is.
    """

    model: str  # name of the model on the server
    base_url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"  # environment variable that holds the key
    concurrency: Annotated[int, Field(ge=1)] = 64  # most requests at once
    timeout_seconds: Annotated[float, Field(gt=0.0)] = 120.0  # for one text, retries included
    retries: Annotated[int, Field(ge=0)] = 4  # after a request that failed for a while
    backoff_seconds: Annotated[float, Field(ge=0.0)] = 0.5  # before the first retry; then doubled
    cache: Annotated[str, FileName("made")] | None = (
        None  # folder in which vectors are kept; null: the reward's own `cache`
    )
    budget: Budget = Budget()

    address: ClassVar[str] = "embeddings"

    @property
    def asks_at_once(self) -> int:
        """The most requests on their way."""
        return self.concurrency

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The address is one."""
        return line.address_problems(self.base_url, self.key_variable)

    def identity(self) -> Mapping[str, Any]:
        """Model, and the address unless it is loopback."""
        where = "loopback" if line.is_near(self.base_url) else self.base_url.rstrip("/")
        return {"judge": "openai_embeddings", "server": where, "model": self.model}

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """A vector as JSON per text, in their order.

        Raises:
            TaskFailed: the server refuses, fails again and again, or the budget is spent.
        """
        return await line.replies(self, prompts)

    def body(self, prompt: str) -> dict[str, Any]:
        """What is posted for one text."""
        return {"model": self.model, "input": prompt}

    def said(self, data: Any) -> str:
        """The vector of a reply."""
        return json.dumps([float(number) for number in data["data"][0]["embedding"]])
