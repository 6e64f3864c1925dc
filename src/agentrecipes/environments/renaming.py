"""Renames interchangeable names: a task under a permutation of them means the same.

A tiny model that always met the same names would learn the facts by heart instead of learning to
search, so training poses each task under names of its own; without, held-out exact match fell from
.69 to .38 while that on training tasks rose.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from agentrecipes.numerics.streams import derive
from agentrecipes.records import Passage, Task

WORD = re.compile(r"\S+")
MEMORY = 65536  # texts whose names are remembered


class Renaming:
    """One permutation of `symbols`, drawn from `seed`; a symbol is only ever a whole word."""

    def __init__(self, symbols: frozenset[str], seed: int) -> None:
        self._symbols = symbols
        self._names = _ordered(symbols)
        self._targets: list[str] = self._names[permutation(len(self._names), seed)].tolist()

    def text(self, text: str) -> str:
        """`text` under the new names."""
        frame, places = _frame(text, self._symbols)
        return frame % tuple([self._targets[place] for place in places]) if places else text

    def value(self, value: Any) -> Any:
        """Plain data with every string inside it renamed."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, tuple | list):
            return type(value)([self.value(item) for item in value])
        if isinstance(value, Mapping):
            return {key: self.value(item) for key, item in value.items()}
        return value

    def task(self, task: Task) -> Task:
        """The task as it is posed under the new names; its id and split stay."""
        return replace(
            task,
            question=self.text(task.question),
            gold_answers=tuple([self.text(answer) for answer in task.gold_answers]),
            data=self.value(task.data),
        )

    def passage(self, passage: Passage) -> Passage:
        """A passage as it is shown; its id stays."""
        return Passage(passage.id, self.text(passage.title), self.text(passage.text))

    def original(self, text: str) -> str:
        """A text that uses the new names under the old ones; undoes `text`."""
        return WORD.sub(lambda word: self._inverse.get(word[0], word[0]), text)

    @cached_property
    def _inverse(self) -> dict[str, str]:
        return dict(zip(self._targets, self._names, strict=True))


def permutation(names: int, seed: int) -> np.ndarray:
    """(names,) int64: name number n, in sorted order, becomes number ``permutation[n]``."""
    # `streams.uniforms` would seed the generator more slowly, and this runs for every row.
    keys = np.random.Generator(np.random.Philox(key=derive("rename", seed)))
    return np.argsort(keys.random(names), kind="stable")


@lru_cache(maxsize=16)
def _ordered(symbols: frozenset[str]) -> np.ndarray:
    return np.array(sorted(symbols), dtype=object)


@lru_cache(maxsize=16)
def _places(symbols: frozenset[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(_ordered(symbols))}


@lru_cache(maxsize=MEMORY)
def _frame(text: str, symbols: frozenset[str]) -> tuple[str, tuple[int, ...]]:
    """The text as a %-format with a hole for each symbol, and which symbol stood there.

    For a text without symbols the frame is unused; per cent signs are escaped for the others.
    """
    places = _places(symbols)
    found: list[int] = []

    def hole(word: re.Match[str]) -> str:
        if (place := places.get(word[0].replace("%%", "%"))) is None:
            return word[0]
        found.append(place)
        return "%s"

    frame = WORD.sub(hole, text.replace("%", "%%"))
    return (frame, tuple(found)) if found else ("", ())
