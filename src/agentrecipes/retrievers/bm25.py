"""BM25 in Lucene's variant, exact: Lù 2024, https://arxiv.org/abs/2407.03618."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.errors import Problem
from agentrecipes.records import Passage
from agentrecipes.retrievers.corpus import best, indexed, own_or, problems
from agentrecipes.retrievers.kept import arrays, key_of

if TYPE_CHECKING:
    import numpy as np

WORD = re.compile(r"'s\b|\w+")  # the possessive is a word of its own; other punctuation is none
MEMORY = 65536  # queries whose results are kept
KEPT_FROM = 20_000  # passages from which on an index is worth a file
Settings = tuple[str, int, float, float]  # "bm25", title_boost, k1, b
# Lucene's English list, and the possessive. Question words are none of it: they find passages.
STOP_WORDS = frozenset(
    re.findall(
        r"\S+",
        """'s a an and are as at be but by for if in into is it no not of on or such that the their
        then there these they this to was will with""",
    )
)


@component("retriever")
class Bm25(Component):
    """Finds what shares rare words with the query.

    Lucene's `k1` and stop words, Anserini's `b` for passages, and a title that counts twice:
    docs/results/retrieval.md has what they find on four question sets.
    """

    top_k: Annotated[int, Field(ge=1)] = 3  # passages a query
    corpus: Annotated[str, FileName("data")] | None = (
        None  # file of lines, or Parquet, with id, title, text; null: the dataset's own
    )
    title_boost: Annotated[int, Field(ge=0)] = 2  # times the title is indexed besides the text
    k1: Annotated[float, Field(ge=0.0)] = 1.2  # how much a word's repetition counts
    b: Annotated[float, Field(ge=0.0, le=1.0)] = 0.4  # how much long passages are discounted
    stop_words: Literal["english", "none"] = (
        "english"  # not looked for, unless a query has no other words
    )

    def rules_of_corpus(self) -> Iterable[Problem]:
        """What is wrong with the corpus as far as its first line tells; paths from outside."""
        return problems(self.corpus)

    def open(self, corpus: Sequence[Passage]) -> Index:
        """An index of `corpus`, or of the recipe's own file; the same contents are indexed once."""
        settings = ("bm25", self.title_boost, self.k1, self.b)
        table = indexed(
            own_or(self.corpus, corpus),
            settings,
            lambda found, contents: Table(found, contents, settings=settings),
        )
        return Index(table, self.top_k, self.stop_words == "english")


def words(text: str) -> list[str]:
    """The words of a text as BM25 counts them: case folded, ``'s`` a word, no punctuation."""
    return WORD.findall(text.casefold().replace("\u2019", "'"))


class Index:
    """A searchable corpus and how many passages the recipe asks of it."""

    def __init__(self, table: Table, top_k: int, stop: bool) -> None:
        self._table = table
        self._top_k = top_k
        self._stop = stop

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Passage]]:
        """The best passages of each query, best first; ties keep the order of the corpus."""
        most = self._top_k if k is None else k
        return [[p for p, _ in self._table.find(query, most, self._stop)] for query in queries]

    def scores(self, query: str) -> np.ndarray:
        """The score of every passage, (N,), 0 without a word in common."""
        return self._table.scores(query, self._stop)

    def scored(self, query: str, k: int) -> Sequence[tuple[Passage, float]]:
        """The best `k` passages with their scores."""
        return self._table.find(query, k, self._stop)


class Table:
    """What each word of the corpus adds to each passage's score, computed once."""

    def __init__(self, corpus: tuple[Passage, ...], contents: str, *, settings: Settings) -> None:
        self._corpus = corpus
        if len(corpus) < KEPT_FROM:
            columns = _columns(corpus, settings)
        else:
            key = key_of(*settings, contents)
            columns = arrays(key, lambda: _columns(corpus, settings))
        named = columns["words"].tobytes().decode("utf-8", "surrogatepass").split("\n")
        self._parts: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        for column, word in enumerate(named if columns["words"].size else ()):
            part = slice(int(columns["ends"][column]), int(columns["ends"][column + 1]))
            self._parts[word] = (columns["places"][part], columns["scores"][part])
        self.find = lru_cache(maxsize=MEMORY)(self._find)

    def scores(self, query: str, stop: bool) -> np.ndarray:
        """Every passage's score, (N,) float32 from 0."""
        import numpy as np

        scores = np.zeros(len(self._corpus), dtype=np.float32)
        asked = words(query)
        for word in [word for word in asked if not stop or word not in STOP_WORDS] or asked:
            if word in self._parts:
                indices, parts = self._parts[word]
                scores[indices] += parts
        return scores

    def _find(self, query: str, k: int, stop: bool) -> tuple[tuple[Passage, float], ...]:
        scores = self.scores(query, stop)
        return tuple((self._corpus[n], float(scores[n])) for n in best(scores, k, above=0.0))


def _columns(corpus: Sequence[Passage], settings: Settings) -> Mapping[str, np.ndarray]:
    """The words in one text, and for each, from end to end, places in the corpus and scores."""
    import bm25s  # type: ignore[import-untyped]  # it ships no types
    import numpy as np

    _, title_boost, k1, b = settings
    tokens = [words(" ".join([passage.title] * title_boost + [passage.text])) for passage in corpus]
    if not any(tokens):
        return {name: np.zeros(0, np.uint8) for name in ("words", "ends", "places", "scores")}
    index = bm25s.BM25(k1=k1, b=b)
    index.index(tokens, show_progress=False)
    named = sorted((column, word) for word, column in index.vocab_dict.items() if word)
    text = "\n".join(word for _, word in named).encode("utf-8", "surrogatepass")
    return {
        "words": np.frombuffer(text, np.uint8),
        "ends": index.scores["indptr"],
        "places": index.scores["indices"],
        "scores": index.scores["data"],
    }
