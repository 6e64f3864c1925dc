"""BM25 in Lucene's variant, exact and in memory: Lù 2024, https://arxiv.org/abs/2407.03618."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.recipe.lines import passages
from agentrecipes.records import Passage

if TYPE_CHECKING:
    import numpy as np

WORD = re.compile(r"'s\b|\w+")  # the possessive is a word of its own; other punctuation is none
MEMORY = 65536  # queries whose results are kept
RECENT = 16  # corpora that are known by identity, so that opening them again is free


@component("retriever")
class Bm25(Component):
    """Finds what shares rare words with the query."""

    top_k: Annotated[int, Field(ge=1)] = 3  # passages a query
    corpus: Annotated[str, FileName("data")] | None = (
        None  # file of lines with id, title, text; null: the dataset's own
    )
    title_boost: Annotated[int, Field(ge=0)] = 1  # times the title is indexed besides the text

    def open(self, corpus: Sequence[Passage]) -> Index:
        """An index of `corpus`, or of the recipe's own file; the same contents are indexed once."""
        if self.corpus is not None:
            corpus = passages(Path(self.corpus))
        held = _recent.get((id(corpus), self.title_boost))
        if held is None or held[0] is not corpus:
            held = (corpus, _indexed(_Contents(corpus), self.title_boost))
            if len(_recent) >= RECENT:
                _recent.clear()
            _recent[id(corpus), self.title_boost] = held
        return Index(held[1], self.top_k)


def words(text: str) -> list[str]:
    """The words of a text as BM25 counts them: case folded, ``'s`` a word, no punctuation."""
    return WORD.findall(text.casefold().replace("\u2019", "'"))


class Index:
    """A searchable corpus and how many passages the recipe asks of it."""

    def __init__(self, table: Table, top_k: int) -> None:
        self._table = table
        self._top_k = top_k

    def search(self, queries: Sequence[str], k: int | None = None) -> list[list[Passage]]:
        """The best passages of each query, best first; ties keep the order of the corpus."""
        most = self._top_k if k is None else k
        return [list(self._table.find(query, most)) for query in queries]


class Table:
    """What each word of the corpus adds to each passage's score, computed once."""

    def __init__(self, corpus: tuple[Passage, ...], title_boost: int) -> None:
        import bm25s  # type: ignore[import-untyped]  # it ships no types

        tokens = [
            words(" ".join([passage.title] * title_boost + [passage.text])) for passage in corpus
        ]
        self._corpus = corpus
        self._parts: dict[str, tuple[np.ndarray, np.ndarray]] = {}
        if any(tokens):
            index = bm25s.BM25()
            index.index(tokens, show_progress=False)
            ends = index.scores["indptr"]
            for word, column in index.vocab_dict.items():
                if not word:  # bm25s adds an empty word that has no column
                    continue
                part = slice(ends[column], ends[column + 1])
                self._parts[word] = (index.scores["indices"][part], index.scores["data"][part])
        self.find = lru_cache(maxsize=MEMORY)(self._find)

    def _find(self, query: str, k: int) -> tuple[Passage, ...]:
        import numpy as np

        scores = np.zeros(len(self._corpus), dtype=np.float32)
        for word in words(query):
            if word in self._parts:
                indices, parts = self._parts[word]
                scores[indices] += parts
        if k < 1 or not len(scores):
            return ()
        # The k-th best score bounds the candidates, so that only they are sorted.
        bound = np.partition(scores, len(scores) - k)[len(scores) - k] if k < len(scores) else 0.0
        found = np.flatnonzero((scores >= bound) & (scores > 0.0))
        best = found[np.argsort(-scores[found], kind="stable")][:k]
        return tuple(self._corpus[place] for place in best)


class _Contents:
    """A corpus as a key: two are equal if their passages are."""

    def __init__(self, corpus: Sequence[Passage]) -> None:
        self.passages = tuple(corpus)
        digest = hashlib.blake2b(digest_size=16)
        for passage in self.passages:
            digest.update(repr((passage.id, passage.title, passage.text)).encode())
        self._digest = digest.digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Contents) and self._digest == other._digest


@lru_cache(maxsize=8)
def _indexed(contents: _Contents, title_boost: int) -> Table:
    return Table(contents.passages, title_boost)


_recent: dict[
    tuple[int, int], tuple[Sequence[Passage], Table]
] = {}  # by identity; opens cost nothing
