"""Search by meaning: the passages whose vectors point where the query's does, exact."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.errors import Problem
from agentrecipes.records import Passage
from agentrecipes.retrievers.corpus import best, indexed, own_or, problems
from agentrecipes.retrievers.encoders import COMMAND, PACKAGED, encoder, identity, missing
from agentrecipes.retrievers.kept import arrays, key_of

if TYPE_CHECKING:
    import numpy as np

MEMORY = 16384  # queries whose results are kept
DECIMALS = 6  # of a cosine; beyond them a score depends on the place in the corpus


@component("retriever")
class Dense(Component):
    """Cosine of embeddings over the whole corpus, without approximation.

    `wordllama` are static embeddings that travel in a package. Any other name is a folder, or a
    model on a hub, for sentence-transformers: `intfloat/e5-base-v2`, which Search-R1 uses, wants
    the prefixes "query: " and "passage: ". Vectors are kept on disk under the hash of corpus and
    model.
    """

    top_k: Annotated[int, Field(ge=1)] = 3  # passages a query
    corpus: Annotated[str, FileName("data")] | None = (
        None  # file of lines, or Parquet, with id, title, text; null: the dataset's own
    )
    model: Annotated[str, FileName("hub")] = PACKAGED  # wordllama, a folder or a hub name
    query_prefix: str = ""  # what the model wants before a query
    passage_prefix: str = ""  # and before a passage

    def rules(self, stage: Any) -> Iterable[Problem]:
        """What makes the vectors is installed."""
        if (library := missing(self.model)) is not None:
            yield Problem("missing_extra", "model", f"{library} is not installed", f"{COMMAND}.")

    def rules_of_corpus(self) -> Iterable[Problem]:
        """What is wrong with the corpus as far as its first line tells; paths from outside."""
        return problems(self.corpus)

    def open(self, corpus: Sequence[Passage]) -> Index:
        """An index of `corpus`, or of the recipe's own file; the same contents are indexed once.

        Raises:
            MissingExtra: the model's library is not installed.
            RecipeError: there is no such model.
        """
        settings = ("dense", self.model, self.query_prefix, self.passage_prefix)
        vectors = indexed(
            own_or(self.corpus, corpus),
            settings,
            lambda found, contents: Vectors(found, contents, settings=settings),
        )
        return Index(vectors, self.top_k)


class Index:
    """A searchable corpus and how many passages the recipe asks of it."""

    def __init__(self, vectors: Vectors, top_k: int) -> None:
        self._vectors = vectors
        self._top_k = top_k

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Passage]]:
        """The best passages of each query, best first; ties keep the order of the corpus."""
        most = self._top_k if k is None else k
        return [list(self._vectors.find(query, most)) for query in queries]

    def scores(self, query: str) -> np.ndarray:
        """The cosine of every passage, (N,) float32; all -1 for a query that says nothing."""
        return self._vectors.scores(query)


class Vectors:
    """The unit vectors of a corpus."""

    def __init__(
        self, corpus: tuple[Passage, ...], contents: str, *, settings: tuple[str, str, str, str]
    ) -> None:
        _, model, self._query_prefix, prefix = settings
        self._corpus = corpus
        self._encode = encoder(model)

        def made() -> Mapping[str, np.ndarray]:
            return {"vectors": self._encode([f"{prefix}{told(passage)}" for passage in corpus])}

        key = key_of("dense", identity(model), prefix, contents)
        self._vectors = arrays(key, made)["vectors"] if corpus else None
        self.find = lru_cache(maxsize=MEMORY)(self._find)

    def scores(self, query: str) -> np.ndarray:
        """The cosine of every passage, (N,) float32; all -1 for a query that says nothing."""
        import numpy as np

        if self._vectors is None or not any(char.isalnum() for char in query):
            return np.full(len(self._corpus), -1.0, dtype=np.float32)
        cosines = self._vectors @ self._encode([f"{self._query_prefix}{query}"])[0]
        rounded: np.ndarray = cosines.round(DECIMALS)
        return rounded

    def _find(self, query: str, k: int) -> tuple[Passage, ...]:
        places = best(self.scores(query), k, above=-1.0)
        return tuple(self._corpus[place] for place in places)


def told(passage: Passage) -> str:
    """What is encoded of a passage: its title, if it has one, and its text."""
    return f"{passage.title}\n{passage.text}" if passage.title else passage.text
