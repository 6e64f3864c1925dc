"""Words and meaning together: BM25 and embeddings, fused by score or by rank."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, model_validator

from agentrecipes.components import Component, FileName, PartOf, component
from agentrecipes.errors import Problem
from agentrecipes.records import Passage
from agentrecipes.retrievers.bm25 import Bm25
from agentrecipes.retrievers.bm25 import Index as Words
from agentrecipes.retrievers.corpus import best, indexed, own_or, problems
from agentrecipes.retrievers.dense import Dense
from agentrecipes.retrievers.dense import Index as Meaning

if TYPE_CHECKING:
    import numpy as np

RANK_CONSTANT = 60  # of reciprocal rank fusion, as Cormack et al. chose it
DEPTH = 100  # ranks of either side that count in it
MEMORY = 16384  # queries whose results are kept


@component("retriever")
class Hybrid(Component):
    """BM25 finds names, embeddings find paraphrases.

    `weighted_sum` adds both scores, each from its theoretical least, 0 and -1, to its best: TM2C2
    of Bruch et al. 2023, https://arxiv.org/abs/2210.11934. `reciprocal_rank` adds 1 / (60 + rank),
    with the same weights: Cormack et al. 2009, https://doi.org/10.1145/1571941.1572114.
    """

    top_k: Annotated[int, Field(ge=1)] = 3  # passages a query
    corpus: Annotated[str, FileName("data")] | None = (
        None  # file of lines, or Parquet, with id, title, text; null: the dataset's own
    )
    sparse: Annotated[Any, PartOf("retriever"), Field(validate_default=True)] = "bm25"
    dense: Annotated[Any, PartOf("retriever"), Field(validate_default=True)] = "dense"
    fusion: Literal["weighted_sum", "reciprocal_rank"] = "weighted_sum"
    weight: Annotated[float, Field(ge=0.0, le=1.0)] = 0.5  # of dense; the rest is sparse's

    @model_validator(mode="after")
    def _holds_both(self) -> Hybrid:
        if not isinstance(self.sparse, Bm25) or not isinstance(self.dense, Dense):
            raise ValueError("sparse must be bm25 and dense must be dense; write their fields only")
        if self.sparse.corpus or self.dense.corpus:
            raise ValueError("sparse and dense search one corpus; write it beside them")
        return self

    def rules(self, stage: Any) -> Iterable[Problem]:
        """What makes the vectors is installed."""
        return [
            Problem(one.code, f"dense.{one.path}", one.message, one.suggestion)
            for one in self.dense.rules(stage)
        ]

    def rules_of_corpus(self) -> Iterable[Problem]:
        """What is wrong with the corpus as far as its first line tells; paths from outside."""
        return problems(self.corpus)

    def open(self, corpus: Sequence[Passage]) -> Index:
        """Both indexes of `corpus`, or of the recipe's own file.

        Raises:
            MissingExtra: the library of the embedding model is not installed.
        """
        settings = ("hybrid", self.sparse, self.dense, self.fusion, self.weight)
        fused = indexed(own_or(self.corpus, corpus), settings, lambda found, _: Fused(self, found))
        return Index(fused, self.top_k)


class Index:
    """A searchable corpus and how many passages the recipe asks of it."""

    def __init__(self, fused: Fused, top_k: int) -> None:
        self._fused = fused
        self._top_k = top_k

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Passage]]:
        """The best passages of each query, best first; ties keep the order of the corpus."""
        most = self._top_k if k is None else k
        return [list(self._fused.find(query, most)) for query in queries]


class Fused:
    """A corpus that is searched both ways."""

    def __init__(self, settings: Hybrid, corpus: tuple[Passage, ...]) -> None:
        self._corpus = corpus
        self._weight = settings.weight
        self._combine = summed if settings.fusion == "weighted_sum" else ranked
        self._words: Words = settings.sparse.open(corpus)
        self._meaning: Meaning = settings.dense.open(corpus)
        self.find = lru_cache(maxsize=MEMORY)(self._find)

    def _find(self, query: str, k: int) -> tuple[Passage, ...]:
        words, meaning = self._words.scores(query), self._meaning.scores(query)
        fused = self._combine(words, meaning, self._weight)
        return tuple(self._corpus[place] for place in best(fused, k, above=0.0))


def summed(words: np.ndarray, meaning: np.ndarray, weight: float) -> np.ndarray:
    """(1 - w) s / max s + w (c + 1) / (max c + 1) of (N,) BM25 scores s and cosines c."""
    fused: np.ndarray = (1 - weight) * _to_one(words) + weight * _to_one(meaning + 1.0)
    return fused


def _to_one(scores: np.ndarray) -> np.ndarray:
    most = float(scores.max()) if len(scores) else 0.0
    return scores / most if most > 0.0 else scores * 0.0


def ranked(words: np.ndarray, meaning: np.ndarray, weight: float) -> np.ndarray:
    """(1 - w) / (60 + rank by words) + w / (60 + rank by meaning), 0 beyond the first hundred."""
    import numpy as np

    fused = np.zeros(len(words))
    for scores, share, above in ((words, 1 - weight, 0.0), (meaning, weight, -1.0)):
        for rank, place in enumerate(best(scores, DEPTH, above=above), start=1):
            fused[place] += share / (RANK_CONSTANT + rank)
    return fused
