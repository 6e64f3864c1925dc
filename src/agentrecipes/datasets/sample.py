"""Small samples of real question sets that travel with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from agentrecipes.components import Component, component, suggest
from agentrecipes.datasets.reading import SPLITS, common_fields, read
from agentrecipes.datasets.shipped import folder
from agentrecipes.recipe.lines import passages
from agentrecipes.records import Passage, Task


@component("dataset")
class Sample(Component):
    """Real text without a download: enough to try a recipe, far too little to report a score."""

    set_: Annotated[str, Field(alias="set")] = "hotpotqa"  # HotpotQA: questions of two hops

    metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    spoken: ClassVar[bool] = True
    symbols: ClassVar[frozenset[str]] = frozenset()

    @field_validator("set_")
    @classmethod
    def _is_shipped(cls, value: str) -> str:
        suffix = "_corpus.jsonl.gz"
        known = [path.name.removesuffix(suffix) for path in folder().glob(f"*{suffix}")]
        if value not in known:
            raise ValueError(f"no sample is called {value!r}. {suggest(value, known)}")
        return value

    @property
    def fields(self) -> frozenset[str]:
        """What every task brings."""
        return common_fields(task for split in SPLITS for task in self.tasks(split))

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split; the three are parts of the original set that share no question."""
        return _tasks(self.set_)[split]

    def corpus(self, split: str) -> Sequence[Passage]:
        """The paragraphs that came with all the questions, gold ones and distractors."""
        return passages(folder() / f"{self.set_}_corpus.jsonl.gz")


@lru_cache(maxsize=8)
def _tasks(name: str) -> Mapping[str, tuple[Task, ...]]:
    return read([folder() / f"{name}.jsonl.gz"])
