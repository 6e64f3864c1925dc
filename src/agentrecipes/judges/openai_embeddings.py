"""Texts as vectors, by a server that speaks OpenAI's protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

from agentrecipes.components import Component, component
from agentrecipes.judges import line, server
from agentrecipes.judges.spending import Budget


@component("judge")
class OpenAIEmbeddings(Component):
    """Asks ``POST {base_url}/embeddings``; a reply is the vector as JSON.

    For rewards that compare meanings, such as RAGAS' answer relevancy; it is limited, retried and
    kept as the judge `openai` is.
    """

    model: server.Model
    base_url: server.Address = server.USUAL
    key_variable: server.KeyVariable = "OPENAI_API_KEY"
    concurrency: server.Concurrency = 64
    timeout_seconds: server.Seconds = 120.0
    retries: server.Retries = 4
    backoff_seconds: server.Backoff = 0.5
    cache: server.Cache = None
    budget: Budget = Budget()

    asks_at_once: ClassVar = server.asks_at_once
    rules: ClassVar = server.rules
    answer: ClassVar = line.replies
    address: ClassVar[str] = "embeddings"

    def identity(self) -> Mapping[str, Any]:
        """Model, and the address unless it is loopback."""
        return {"judge": "openai_embeddings", "server": server.where(self), "model": self.model}

    def body(self, prompt: str) -> dict[str, Any]:
        """What is posted for one text."""
        return {"model": self.model, "input": prompt}

    def said(self, data: Any) -> str:
        """The vector of a reply."""
        return json.dumps([float(number) for number in data["data"][0]["embedding"]])
