"""A server that speaks OpenAI's chat protocol: vLLM, llama.cpp, a gateway, OpenAI itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.errors import Problem
from agentrecipes.judges import line
from agentrecipes.judges.spending import Budget


@component("judge")
class OpenAI(Component):
    """Asks ``POST {base_url}/chat/completions``, many prompts side by side, with retries.

    The key is read from the environment when it is needed, and never reaches a recipe, a table or
    the cache. A server on loopback needs none. What was replied is kept under the model's name and
    parameters, and under the address unless that is loopback, where a port says nothing.
    """

    model: str  # name of the model on the server
    base_url: str = "https://api.openai.com/v1"
    key_variable: str = "OPENAI_API_KEY"  # environment variable that holds the key
    system: str | None = None  # system message; null: none
    temperature: Annotated[float, Field(ge=0.0)] = 0.0
    tokens: Annotated[int, Field(ge=1)] = 256  # most tokens of a reply
    seed: int | None = None  # passed on, for servers that take one
    concurrency: Annotated[int, Field(ge=1)] = 64  # most requests at once
    timeout_seconds: Annotated[float, Field(gt=0.0)] = 120.0  # for one prompt, retries included
    retries: Annotated[int, Field(ge=0)] = 4  # after a request that failed for a while
    backoff_seconds: Annotated[float, Field(ge=0.0)] = 0.5  # before the first retry; then doubled
    cache: Annotated[str, FileName("made")] | None = (
        None  # folder in which replies are kept; null: the reward's own `cache`
    )
    budget: Budget = Budget()

    address: ClassVar[str] = "chat/completions"

    @property
    def asks_at_once(self) -> int:
        """The most requests on their way."""
        return self.concurrency

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The address is one."""
        return line.address_problems(self.base_url, self.key_variable)

    def identity(self) -> Mapping[str, Any]:
        """Model, parameters, and the address unless it is loopback."""
        own = ("model", "system", "temperature", "tokens", "seed")
        where = "loopback" if line.is_near(self.base_url) else self.base_url.rstrip("/")
        return {"judge": "openai", "server": where, **{key: getattr(self, key) for key in own}}

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """One reply per prompt, in their order.

        Raises:
            TaskFailed: the server refuses, fails again and again, or the budget is spent.
        """
        return await line.replies(self, prompts)

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
