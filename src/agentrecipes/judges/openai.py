"""A server that speaks OpenAI's chat protocol: vLLM, llama.cpp, a gateway, OpenAI itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.judges import line, server
from agentrecipes.judges.spending import Budget


@component("judge")
class OpenAI(Component):
    """Asks ``POST {base_url}/chat/completions``, many prompts side by side, with retries.

    The key is read from the environment when it is needed, and never reaches a recipe, a table or
    the cache. A server on loopback needs none. What was replied is kept under the model's name and
    parameters, and under the address unless that is loopback, where a port says nothing.
    """

    model: server.Model
    base_url: server.Address = server.USUAL
    key_variable: server.KeyVariable = "OPENAI_API_KEY"
    system: str | None = None  # system message; null: none
    temperature: Annotated[float, Field(ge=0.0)] = 0.0
    tokens: Annotated[int, Field(ge=1)] = 256  # most tokens of a reply
    seed: int | None = None  # passed on, for servers that take one
    concurrency: server.Concurrency = 64
    timeout_seconds: server.Seconds = 120.0
    retries: server.Retries = 4
    backoff_seconds: server.Backoff = 0.5
    cache: server.Cache = None
    budget: Budget = Budget()

    asks_at_once: ClassVar = server.asks_at_once
    rules: ClassVar = server.rules
    answer: ClassVar = line.replies
    address: ClassVar[str] = "chat/completions"

    def identity(self) -> Mapping[str, Any]:
        """Model, parameters, and the address unless it is loopback."""
        own = ("model", "system", "temperature", "tokens", "seed")
        return {
            "judge": "openai",
            "server": server.where(self),
            **{key: getattr(self, key) for key in own},
        }

    def body(self, prompt: str) -> dict[str, Any]:
        """What is posted for one prompt."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return {
            "model": self.model,
            "messages": [*system, {"role": "user", "content": prompt}],
            "temperature": self.temperature,
            "max_tokens": self.tokens,
            **({} if self.seed is None else {"seed": self.seed}),
        }

    def said(self, data: Any) -> str:
        """The text of a completion; "" for one without text."""
        content = data["choices"][0]["message"]["content"]
        return content if isinstance(content, str) else ""
