"""A retriever behind HTTP: ``POST /retrieve`` as Search-R1's and RAG-R1's servers speak it.

Asked is ``{"queries": [q], "topk": k, "return_scores": true}``; the reply is ``{"result":
[[{"document": {"id", "contents"}, "score"}]]}``, one list per query, where ``contents`` is the
quoted title, a newline and the text. After Jin et al. 2025, https://arxiv.org/abs/2503.09516.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Annotated, Any
from urllib.parse import urlsplit

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem
from agentrecipes.recipe.lines import passage_of
from agentrecipes.records import Passage
from agentrecipes.retrievers.posting import Line, Unreadable


@component("retriever")
class Http(Component):
    """Asks a server, which has the corpus.

    Several episodes may wait for it side by side. A server that is down, slow or says something
    else fails the search after the last try; `environment.on_failure` says what that means.
    """

    url: str = "http://127.0.0.1:8000/retrieve"
    top_k: Annotated[int, Field(ge=1)] = 3  # passages a query
    timeout_seconds: Annotated[float, Field(gt=0.0)] = 30.0  # for one request
    retries: Annotated[int, Field(ge=0)] = 2  # after a request that failed for a while
    backoff_seconds: Annotated[float, Field(ge=0.0)] = 0.5  # before the first retry; then doubled
    concurrency: Annotated[int, Field(ge=1)] = 16  # most requests at once
    most_bytes: Annotated[int, Field(ge=1)] = 8_000_000  # of a reply; a longer one is a failure
    key_variable: str | None = None  # environment variable whose value is sent as a bearer token

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The address is one and holds no secret; a variable that is named is set."""
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            hint = "Write for example `url: http://127.0.0.1:8000/retrieve`."
            yield Problem("wrong_value", "url", f"{self.url!r} is no address of a server", hint)
        elif parts.username or parts.password or parts.query:
            found = "the address holds a user, a password or a query, which would be stored"
            yield Problem("secret", "url", found, "Name a variable under `key_variable`.")
        if self.key_variable is not None and not os.environ.get(self.key_variable):
            found = f"the environment variable {self.key_variable} is not set"
            yield Problem("no_key", "key_variable", found, f"`export {self.key_variable}=…`.")

    def open(self, corpus: Sequence[Passage]) -> Server:
        """The server; `corpus` is not used, since the server has its own."""
        return Server(self)


class Server:
    """A server that is asked; equal retrievers share its threads."""

    def __init__(self, settings: Http) -> None:
        self._settings = settings

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Passage]]:
        """The server's passages of each query; one without a letter or digit is not sent.

        Raises:
            TaskFailed: no reply came, or none that can be read.
        """
        settings = self._settings
        most = settings.top_k if k is None else k
        asked = [sendable(query) for query in queries]
        wanted = [query for query in asked if query and most > 0]
        if not wanted:
            return [[] for _ in queries]
        body = {"queries": wanted, "topk": most, "return_scores": True}
        line = Line(
            settings.url,
            seconds=settings.timeout_seconds,
            retries=settings.retries,
            backoff=settings.backoff_seconds,
            most_bytes=settings.most_bytes,
        )
        found = iter(line.post(body, _key(settings.key_variable), lambda data: read(data, wanted)))
        return [next(found)[:most] if query and most > 0 else [] for query in asked]

    async def find(self, queries: Sequence[str]) -> list[list[Passage]]:
        """`search` in a thread, so that other episodes go on meanwhile.

        Raises:
            TaskFailed: as `search` does.
        """
        pool = _pool(self._settings.url, self._settings.concurrency)
        return await asyncio.get_running_loop().run_in_executor(pool, self.search, queries)


def sendable(query: str) -> str:
    """The query as UTF-8 can say it; "" for one without a letter or digit."""
    text = query.encode("utf-8", "replace").decode("utf-8").strip()
    return text if any(char.isalnum() for char in text) else ""


def read(data: Any, queries: Sequence[str]) -> list[list[Passage]]:
    """The passages in a reply, best first.

    Raises:
        Unreadable: it is no reply to these queries.
    """
    result = data.get("result") if isinstance(data, Mapping) else None
    if not isinstance(result, list) or len(result) != len(queries):
        raise Unreadable(f"'result' is no list of {len(queries)} lists, one a query")
    return [_ranked(found) for found in result]


def _ranked(found: Any) -> list[Passage]:
    if not isinstance(found, list):
        raise Unreadable(f"'result' holds {type(found).__name__} where a list belongs")
    ranked = [_passage(entry, place) for place, entry in enumerate(found)]
    return list({passage.id: passage for passage in reversed(ranked)}.values())[::-1]


def _passage(entry: Any, place: int) -> Passage:
    """A passage; a server that sends no ids gets those of the contents."""
    row = entry.get("document", entry) if isinstance(entry, Mapping) else None
    if not isinstance(row, Mapping):
        raise Unreadable(f"passage {place + 1} is no object with a document")
    identity = row.get("id")
    try:
        return passage_of({**row, "id": str(row) if identity is None else str(identity)})
    except ValueError as error:
        raise Unreadable(f"passage {place + 1} has {error}") from error


def _key(variable: str | None) -> str | None:
    return None if variable is None else os.environ.get(variable)


@lru_cache(maxsize=16)
def _pool(url: str, concurrency: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(concurrency, thread_name_prefix="retriever")
