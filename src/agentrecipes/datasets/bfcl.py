"""The Berkeley Function Calling Leaderboard's cases of one turn."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from agentrecipes.components import Component, FileName, component, suggest
from agentrecipes.datasets.cases import SPLITS, cases
from agentrecipes.datasets.shipped import folder
from agentrecipes.records import Passage, Task

SAMPLE = "bfcl.jsonl.gz"


@component("dataset")
class Bfcl(Component):
    """What the user wants and the functions at hand; the gold calls list their accepted values.

    Without a `path` it is a shipped sample of BFCL v4 (Patil et al. 2025,
    https://gorilla.cs.berkeley.edu; Apache-2.0): simple, multiple, parallel, irrelevance and
    relevance, in Python and of one turn. BFCL is a benchmark: a model that is trained on it cannot
    be compared on it with others.
    """

    path: Annotated[Annotated[str, FileName("data")] | None, Field(validate_default=True)] = (
        None  # lines in BFCL's form with category, ground_truth and maybe a thought; or a folder
    )
    categories: tuple[str, ...] = ()  # simple_python, live_parallel, ...; none: all that are there

    spoken: ClassVar[bool] = True
    has_corpus: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]] = ("bfcl",)
    symbols: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[frozenset[str]] = frozenset(
        {"question", "category", "functions", "ground_truth", "type", "messages", "calls"}
    )

    @field_validator("categories")
    @classmethod
    def _are_bfcl_s(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for name in value:
            if name not in CATEGORIES:
                raise ValueError(f"no category is called {name!r}. {suggest(name, CATEGORIES)}")
        return value

    def tasks(self, split: str) -> Sequence[Task]:
        """The cases of a split in the order of the file."""
        path = folder() / SAMPLE if self.path is None else Path(self.path)
        return _chosen(path, self.categories)[split]

    def corpus(self, split: str) -> Sequence[Passage]:
        """There is nothing to search in."""
        return ()


CATEGORIES = (
    *("simple_python", "multiple", "parallel", "parallel_multiple", "irrelevance"),
    *("live_simple", "live_multiple", "live_parallel", "live_parallel_multiple"),
    *("live_irrelevance", "live_relevance"),
)


@lru_cache(maxsize=16)
def _chosen(path: Path, categories: tuple[str, ...]) -> dict[str, tuple[Task, ...]]:
    wanted = categories or CATEGORIES
    found = cases(path)
    return {split: tuple(t for t in found[split] if t.type in wanted) for split in SPLITS}
