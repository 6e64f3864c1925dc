"""Small samples of real question sets that travel with the package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, field_validator

from agentrecipes.components import Component, component, suggest
from agentrecipes.datasets.reading import SPLITS, common_fields, read
from agentrecipes.datasets.shipped import folder
from agentrecipes.recipe.lines import passages
from agentrecipes.records import Passage, Task

SETS = {  # the set → the reward that measures it
    "hotpotqa": "exact_match",
    "2wiki": "exact_match",
    "musique": "exact_match",
    "nq": "exact_match",
    "medqa": "multiple_choice",
    "gsm8k": "math_equal",
    "math": "math_equal",
}


@component("dataset")
class Sample(Component):
    """Real text without a download: enough to try a recipe, far too little to report a score.

    ``hotpotqa``: questions of two hops with their paragraphs; ``2wiki``: of two to four, from
    templates; ``musique``: of two to four that resist short cuts; ``nq``: what people asked a
    search engine; ``medqa``: a medical exam with four options, and abstracts to search in;
    ``gsm8k``: word problems of primary school; ``math``: competition problems by subject.
    """

    set_: Annotated[str, Field(alias="set")] = "hotpotqa"

    spoken: ClassVar[bool] = True
    symbols: ClassVar[frozenset[str]] = frozenset()

    @field_validator("set_")
    @classmethod
    def _is_shipped(cls, value: str) -> str:
        if value not in SETS:
            raise ValueError(f"no sample is called {value!r}. {suggest(value, SETS)}")
        return value

    @property
    def metrics(self) -> tuple[str, ...]:
        """The reward that measures the set."""
        return (SETS[self.set_],)

    @property
    def has_corpus(self) -> bool:
        """Whether paragraphs came with the questions."""
        return self._corpus.is_file()

    @property
    def fields(self) -> frozenset[str]:
        """What every task brings."""
        return common_fields(task for split in SPLITS for task in self.tasks(split))

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split; the three are parts of the original set that share no question."""
        return _tasks(self.set_)[split]

    def corpus(self, split: str) -> Sequence[Passage]:
        """The paragraphs that came with all the questions, gold ones and distractors."""
        return passages(self._corpus) if self.has_corpus else ()

    @property
    def _corpus(self) -> Path:
        return folder() / f"{self.set_}_corpus.jsonl.gz"


@lru_cache(maxsize=8)
def _tasks(name: str) -> Mapping[str, tuple[Task, ...]]:
    return read([folder() / f"{name}.jsonl.gz"])
