"""A server that speaks OpenAI's chat protocol: vLLM, llama.cpp, a gateway, OpenAI itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.errors import Problem, TaskFailed
from agentrecipes.judges.spending import Budget, Purse

if TYPE_CHECKING:
    import httpx

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # statuses after which waiting helps
LONGEST_WAIT = 60.0  # seconds between two tries, whatever a server asks for
SHOWN = 200  # characters of a server's error that are told


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

    @property
    def asks_at_once(self) -> int:
        """The most requests on their way."""
        return self.concurrency

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The address is one."""
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            found = f"{self.base_url!r} is no address of a server"
            hint = "Write for example `base_url: http://127.0.0.1:8000/v1`."
            yield Problem("wrong_value", "base_url", found, hint)
        elif parts.username or parts.password or parts.query:
            found = "the address holds a user, a password or a query, which would be stored"
            hint = f"Put the key into the environment variable {self.key_variable}."
            yield Problem("secret", "base_url", found, hint)

    def identity(self) -> Mapping[str, Any]:
        """Model, parameters, and the address unless it is loopback."""
        own = ("model", "system", "temperature", "tokens", "seed")
        where = "loopback" if self._is_near else self.base_url.rstrip("/")
        return {"judge": "openai", "server": where, **{key: getattr(self, key) for key in own}}

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """One reply per prompt, in their order.

        Raises:
            TaskFailed: the server refuses, fails again and again, or the budget is spent.
        """
        line = _line(self, id(asyncio.get_running_loop()))
        return list(await asyncio.gather(*(line.reply(prompt) for prompt in prompts)))

    @property
    def _is_near(self) -> bool:
        return urlsplit(self.base_url).hostname in LOOPBACK

    def headers(self) -> dict[str, str]:
        """With the key, if there is one.

        Raises:
            TaskFailed: a distant server and no key.
        """
        key = os.environ.get(self.key_variable)
        if key:
            return {"Authorization": f"Bearer {key}"}
        if self._is_near:
            return {}
        name = self.key_variable
        raise TaskFailed(f"the judge at {self.base_url} needs a key: `export {name}=…`")

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


class _Line:
    """The connection to one server: its client, who waits, and what was spent."""

    def __init__(self, judge: OpenAI) -> None:
        import httpx

        limits = httpx.Limits(max_connections=judge.concurrency)
        self._judge = judge
        self._client = httpx.AsyncClient(
            timeout=judge.timeout_seconds, limits=limits, trust_env=not judge._is_near
        )
        self._free = asyncio.Semaphore(judge.concurrency)
        self._purse = Purse(judge.budget)

    async def reply(self, prompt: str) -> str:
        judge, problem = self._judge, ""
        for attempt in range(judge.retries + 1):
            async with self._free:
                self._purse.take_call()
                found, problem, wait = await self._post(prompt)
            if found is not None:
                return found
            if wait is None or attempt == judge.retries:
                break
            backoff = judge.backoff_seconds * 2**attempt
            await asyncio.sleep(min(max(backoff, wait), LONGEST_WAIT))
        raise TaskFailed(problem)

    async def _post(self, prompt: str) -> tuple[str | None, str, float | None]:
        """The reply; or None, what went wrong, and the least wait before a retry that may help."""
        import httpx

        judge = self._judge
        url = f"{judge.base_url.rstrip('/')}/chat/completions"
        try:
            response = await self._client.post(
                url, json=judge.body(prompt), headers=judge.headers()
            )
        except httpx.HTTPError as error:
            return None, f"the judge cannot be reached: {type(error).__name__}", 0.0
        if response.status_code != httpx.codes.OK:
            said = " ".join(response.text.split())[:SHOWN]
            problem = f"the judge's server says {response.status_code}: {said}"
            return None, problem, _wait(response) if response.status_code in AGAIN else None
        return self._content(response)

    def _content(self, response: httpx.Response) -> tuple[str | None, str, float | None]:
        try:
            data = response.json()
            content = data["choices"][0]["message"]["content"]
        except (ValueError, KeyError, IndexError, TypeError):
            return None, "the judge's server sent something else than a chat completion", 0.0
        if isinstance(data.get("usage"), Mapping):
            self._purse.pay(data["usage"])
        return (content if isinstance(content, str) else ""), "", None


def _wait(response: httpx.Response) -> float:
    """Seconds that the server asks to wait; 0 where it does not say."""
    try:
        return max(float(response.headers.get("retry-after", 0.0)), 0.0)
    except ValueError:
        return 0.0


@lru_cache
def _line(judge: OpenAI, loop: int) -> _Line:
    return _Line(judge)
