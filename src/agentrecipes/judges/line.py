"""The connection to a server that speaks OpenAI's protocol: its client, its queue, its purse."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from agentrecipes.errors import Problem, TaskFailed
from agentrecipes.judges.spending import Budget, Purse

if TYPE_CHECKING:
    import httpx

LOOPBACK = {"127.0.0.1", "localhost", "::1"}
AGAIN = {408, 409, 425, 429, 500, 502, 503, 504, 529}  # statuses after which waiting helps
LONGEST_WAIT = 60.0  # seconds between two tries, whatever a server asks for
SHOWN = 200  # characters of a server's error that are told


class Asked(Protocol):
    """The fields of who is asked over such a line, what is posted, and how a reply is read."""

    @property
    def base_url(self) -> str: ...
    @property
    def key_variable(self) -> str: ...
    @property
    def concurrency(self) -> int: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def retries(self) -> int: ...
    @property
    def backoff_seconds(self) -> float: ...
    @property
    def budget(self) -> Budget: ...
    @property
    def address(self) -> str: ...
    def body(self, prompt: str) -> dict[str, Any]: ...
    def said(self, data: Any) -> str: ...


def is_near(url: str) -> bool:
    """Whether an address is loopback: its port says nothing, and it needs no key."""
    return urlsplit(url).hostname in LOOPBACK


def headers(judge: Asked) -> dict[str, str]:
    """With the key, if there is one.

    Raises:
        TaskFailed: a distant server and no key.
    """
    key = os.environ.get(judge.key_variable)
    if key:
        return {"Authorization": f"Bearer {key}"}
    if is_near(judge.base_url):
        return {}
    name = judge.key_variable
    raise TaskFailed(f"the judge at {judge.base_url} needs a key: `export {name}=…`")


class Line:
    """One server; equal judges share it, and its budget, for as long as the process lives."""

    def __init__(self, judge: Asked) -> None:
        import httpx

        limits = httpx.Limits(max_connections=judge.concurrency)
        self._judge = judge
        self._client = httpx.AsyncClient(
            timeout=judge.timeout_seconds, limits=limits, trust_env=not is_near(judge.base_url)
        )
        self._free = asyncio.Semaphore(judge.concurrency)
        self._purse = Purse(judge.budget)

    async def reply(self, prompt: str) -> str:
        """The reply to a prompt, after as many tries as the judge allows.

        Raises:
            TaskFailed: none came, or the budget is spent.
        """
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
        url = f"{judge.base_url.rstrip('/')}/{judge.address}"
        try:
            response = await self._client.post(url, json=judge.body(prompt), headers=headers(judge))
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
            content = self._judge.said(data)
        except (ValueError, KeyError, IndexError, TypeError):
            return None, "the judge's server sent something else than was asked for", 0.0
        if isinstance(data.get("usage"), Mapping):
            self._purse.pay(data["usage"])
        return content, "", None


def _wait(response: httpx.Response) -> float:
    """Seconds that the server asks to wait; 0 where it does not say."""
    try:
        return max(float(response.headers.get("retry-after", 0.0)), 0.0)
    except ValueError:
        return 0.0


async def replies(judge: Asked, prompts: Sequence[str]) -> list[str]:
    """One reply per prompt, in their order.

    Raises:
        TaskFailed: the server refuses, fails again and again, or the budget is spent.
    """
    line = _line(judge, id(asyncio.get_running_loop()))
    return list(await asyncio.gather(*(line.reply(prompt) for prompt in prompts)))


@lru_cache
def _line(judge: Asked, loop: int) -> Line:
    return Line(judge)


def address_problems(url: str, key_variable: str) -> Iterable[Problem]:
    """The address is one, and holds no secret."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        hint = "Write for example `base_url: http://127.0.0.1:8000/v1`."
        yield Problem("wrong_value", "base_url", f"{url!r} is no address of a server", hint)
    elif parts.username or parts.password or parts.query:
        found = "the address holds a user, a password or a query, which would be stored"
        hint = f"Put the key into the environment variable {key_variable}."
        yield Problem("secret", "base_url", found, hint)
