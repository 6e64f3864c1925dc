"""Posting JSON to a server, with limits: time, size and number of tries."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from agentrecipes.errors import TaskFailed

if TYPE_CHECKING:
    import ssl

    import httpx

AGAIN = {408, 425, 429, 500, 502, 503, 504}  # statuses after which waiting helps
LONGEST_WAIT = 30.0  # seconds between two tries
SHOWN = 200  # characters of a server's error that are told
LOOPBACK = {"127.0.0.1", "localhost", "::1"}

T = TypeVar("T")


class Unreadable(ValueError):
    """A reply that is something else than was asked for."""


class _Later(Exception):
    """A try that failed, after which another one may help."""


@dataclass(frozen=True, slots=True)
class Line:
    """Where to post and how long to try: ``Line("http://127.0.0.1:8000/retrieve", …)``."""

    url: str
    seconds: float  # longest wait for one whole reply
    retries: int
    backoff: float  # seconds before the first retry; then doubled
    most_bytes: int  # of a reply

    def post(self, body: Mapping[str, Any], key: str | None, read: Callable[[Any], T]) -> T:
        """What `read` makes of the reply's JSON.

        Raises:
            TaskFailed: no reply that `read` takes came within the tries.
        """
        problem = ""
        for attempt in range(self.retries + 1):
            if attempt:
                time.sleep(min(self.backoff * 2 ** (attempt - 1), LONGEST_WAIT))
            try:
                return read(self._once(body, key))
            except _Later as later:
                problem = str(later)
            except Unreadable as error:
                raise TaskFailed(f"the retriever at {self.url} sent no passages: {error}") from None
        raise TaskFailed(f"the retriever at {self.url} {problem}; {attempt + 1} tries")

    def _once(self, body: Mapping[str, Any], key: str | None) -> Any:
        import httpx

        headers = {"Authorization": f"Bearer {key}"} if key else {}
        parts = urlsplit(self.url)
        trusted, far = _trusted(parts.scheme), parts.hostname not in LOOPBACK
        try:
            # A client per request: a connection that is kept would outlive the run's last search.
            with (
                httpx.Client(verify=trusted, timeout=self.seconds, trust_env=far) as client,
                client.stream("POST", self.url, json=dict(body), headers=headers) as response,
            ):
                return self._data(response)
        except httpx.TimeoutException as error:
            raise _Later(f"gave no reply within {self.seconds:g} s") from error
        except httpx.HTTPError as error:
            raise _Later(f"cannot be reached: {type(error).__name__}") from error

    def _data(self, response: httpx.Response) -> Any:
        if response.status_code != 200:
            said = " ".join(self._bytes(response)[:SHOWN].decode("utf-8", "replace").split())
            found = f"says {response.status_code}: {said}"
            if response.status_code in AGAIN:
                raise _Later(found)
            raise TaskFailed(f"the retriever at {self.url} {found}")
        data = self._bytes(response)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise Unreadable("the reply is no JSON") from error

    def _bytes(self, response: httpx.Response) -> bytes:
        """The reply's bytes, as long as they are few and do not trickle in for ever."""
        deadline = time.monotonic() + self.seconds
        held = bytearray()
        for chunk in response.iter_bytes():
            held += chunk
            if len(held) > self.most_bytes:
                raise Unreadable(f"the reply is longer than {self.most_bytes} bytes")
            if time.monotonic() > deadline:
                raise _Later(f"gave no whole reply within {self.seconds:g} s")
        return bytes(held)


@lru_cache
def _trusted(scheme: str) -> ssl.SSLContext | bool:
    """Certificates, read once; none where nothing is encrypted."""
    import httpx

    return httpx.create_ssl_context() if scheme == "https" else False
