"""What a retriever must do: find passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentrecipes.records import Passage


class Searcher(Protocol):
    """A corpus that is ready to be searched."""

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Passage]]:
        """The best passages of each query, best first, at most `k` (default: ``top_k``).

        Ties keep the order of the corpus; an empty query finds nothing.
        """
        ...


class Retriever(Protocol):
    """How a corpus is searched."""

    top_k: int

    def open(self, corpus: Sequence[Passage]) -> Searcher:
        """Index `corpus`; opening the same corpus again costs nothing."""
        ...
