"""What the retrievers over a corpus share: whose corpus it is, and that it is indexed once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.errors import Problem, RecipeError
from agentrecipes.recipe.lines import first_row, passage_of, passages
from agentrecipes.records import Passage

if TYPE_CHECKING:
    import numpy as np

RECENT = 16  # corpora that are known by identity, so that opening them again is free
HELD = 8  # indexes that are kept in memory

_recent: dict[tuple[int, Hashable], tuple[Sequence[Passage], Any]] = {}  # by identity
_held: dict[tuple[str, Hashable], Any] = {}  # by contents


def own_or(path: str | None, corpus: Sequence[Passage]) -> Sequence[Passage]:
    """The corpus in the recipe's own file, or the dataset's."""
    return corpus if path is None else passages(Path(path))


def problems(path: str | None) -> Iterable[Problem]:
    """What is wrong with the first line of a corpus; the others are read when it is indexed."""
    if path is None or not Path(path).is_file():  # a missing file is told elsewhere
        return
    try:
        where, row = first_row(Path(path))
        try:
            passage_of(row)
        except (KeyError, ValueError) as error:
            raise RecipeError(f"{where}: no passage with id, title and text ({error})") from error
    except RecipeError as error:
        hint = "Write one object with id, title and text a line."
        yield Problem("bad_corpus", "retriever.corpus", error.problems[0].message, hint)


def digest(corpus: Sequence[Passage]) -> str:
    """SHA-256 (hex) of a corpus: equal for equal passages in one order."""
    found = hashlib.sha256()
    for passage in corpus:
        found.update(repr((passage.id, passage.title, passage.text)).encode())
    return found.hexdigest()


def indexed(
    corpus: Sequence[Passage],
    settings: Hashable,
    build: Callable[[tuple[Passage, ...], str], Any],
) -> Any:
    """``build(corpus, its digest)``, once for a corpus and settings in this process."""
    held = _recent.get((id(corpus), settings))
    if held is not None and held[0] is corpus:
        return held[1]
    contents = digest(corpus)
    if (contents, settings) not in _held:
        made = build(tuple(corpus), contents)
        while len(_held) >= HELD:
            _held.pop(next(iter(_held)), None)
        _held[contents, settings] = made
    index = _held[contents, settings]
    if len(_recent) >= RECENT:
        _recent.clear()
    _recent[id(corpus), settings] = (corpus, index)
    return index


def best(scores: np.ndarray, k: int, *, above: float) -> list[int]:
    """Places of the `k` best of (N,) scores that are more than `above`; ties keep their order."""
    import numpy as np

    if k < 1 or not len(scores):
        return []
    # The k-th best score bounds the candidates, so that only they are sorted.
    bound = np.partition(scores, len(scores) - k)[len(scores) - k] if k < len(scores) else above
    found = np.flatnonzero((scores >= bound) & (scores > above))
    ranked: list[int] = found[np.argsort(-scores[found], kind="stable")][:k].tolist()
    return ranked
