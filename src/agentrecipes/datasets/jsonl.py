"""Tasks from files of one's own, one JSON object a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, FileName, component
from agentrecipes.datasets.reading import SPLITS, common_fields, read
from agentrecipes.recipe.lines import passages
from agentrecipes.records import Passage, Task


@component("dataset")
class Jsonl(Component):
    """Each line is a task: ``question``, ``golden_answers``, and whatever else its rewards read.

    A line's ``split`` says where it belongs; a line without one belongs to every split. A folder
    may be given instead of a file: then ``train.jsonl``, ``dev.jsonl``, ``test.jsonl`` and
    ``corpus.jsonl`` in it are read.
    """

    path: Annotated[str, FileName("data")]  # file (.jsonl, .jsonl.gz) or folder
    corpus_path: Annotated[Annotated[str, FileName("data")] | None, Field(alias="corpus")] = (
        None  # lines of id, title, text
    )
    metrics: tuple[str, ...] = ("exact_match",)  # rewards that measure it

    spoken: ClassVar[bool] = True
    symbols: ClassVar[frozenset[str]] = frozenset()

    @property
    def fields(self) -> frozenset[str]:
        """What every line brings."""
        return common_fields(task for split in SPLITS for task in self.tasks(split))

    def tasks(self, split: str) -> Sequence[Task]:
        """The split's tasks in the order of the file."""
        return _tasks(self.path)[split]

    def corpus(self, split: str) -> Sequence[Passage]:
        """The passages of the corpus; the same for every split."""
        path = self._corpus_file
        return () if path is None else passages(path)

    @property
    def has_corpus(self) -> bool:
        """Whether there is one, without reading it."""
        return self._corpus_file is not None

    @property
    def _corpus_file(self) -> Path | None:
        if self.corpus_path is not None:
            return Path(self.corpus_path)
        beside = Path(self.path) / "corpus.jsonl"
        return beside if beside.is_file() else None


@lru_cache(maxsize=8)
def _tasks(path: str) -> Mapping[str, tuple[Task, ...]]:
    place = Path(path)
    files = [place / f"{split}.jsonl" for split in SPLITS] if place.is_dir() else [place]
    return read([file for file in files if file.is_file() or not place.is_dir()])
