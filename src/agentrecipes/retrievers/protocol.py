"""What a retriever must do: find passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from agentrecipes.records import Passage


class Searcher(Protocol):
    """A corpus that is ready to be searched."""

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Passage]]:
        """The best passages of each query, best first, at most `k` (default: ``top_k``).

        Ties keep the order of the corpus; an empty query finds nothing.
        """
        ...


@runtime_checkable
class Waiting(Protocol):
    """A searcher that waits for something else than this process."""

    async def find(self, queries: Sequence[str]) -> list[list[Passage]]:
        """What ``search`` gives, while other episodes go on.

        Raises:
            TaskFailed: it failed, or took too long.
        """
        ...


class Retriever(Protocol):
    """How a corpus is searched."""

    top_k: int

    def open(self, corpus: Sequence[Passage]) -> Searcher:
        """Index `corpus`; opening the same corpus again costs nothing."""
        ...
