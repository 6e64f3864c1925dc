"""What judges behind a server share: their fields, each explained once, and how they are asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import FileName
from agentrecipes.errors import Problem
from agentrecipes.judges import line

USUAL = "https://api.openai.com/v1"

Model = Annotated[str, Field(description="Name of the model on the server.")]
Address = Annotated[str, Field(description="Where the server is, up to /v1.")]
KeyVariable = Annotated[str, Field(description="Environment variable that holds the key.")]
Concurrency = Annotated[int, Field(ge=1, description="Most requests at once.")]
Seconds = Annotated[float, Field(gt=0.0, description="For one prompt, retries included.")]
Retries = Annotated[int, Field(ge=0, description="After a request that failed for a while.")]
Backoff = Annotated[float, Field(ge=0.0, description="Before the first retry; then doubled.")]
Cache = Annotated[
    Annotated[str, FileName("made")] | None,
    Field(description="Folder in which replies are kept; null: the reward's own `cache`."),
]


def _requests(judge: line.Asked) -> int:
    """The most requests on their way."""
    return judge.concurrency


asks_at_once = property(_requests)


def rules(judge: line.Asked, stage: Any) -> Iterable[Problem]:
    """The address is one."""
    return line.address_problems(judge.base_url, judge.key_variable)


def where(judge: line.Asked) -> str:
    """The address as part of who replied: a port of loopback says nothing."""
    return "loopback" if line.is_near(judge.base_url) else judge.base_url.rstrip("/")
