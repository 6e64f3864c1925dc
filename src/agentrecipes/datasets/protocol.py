"""What a dataset must do: say where tasks come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from agentrecipes.records import Passage, Task


class Dataset(Protocol):
    """Tasks in three splits that share no id: ``train``, ``dev``, ``test``."""

    @property
    def metrics(self) -> tuple[str, ...]:
        """Names of the rewards that measure this dataset; the default of ``evaluation.metrics``."""
        ...

    @property
    def fields(self) -> frozenset[str]:
        """What each task brings: ``question``, ``golden_answers``, and keys of ``Task.data``."""
        ...

    @property
    def spoken(self) -> bool:
        """Whether questions are natural language, which needs instructions, or formal."""
        ...

    @property
    def symbols(self) -> frozenset[str]:
        """Names that are interchangeable: a task means the same under any permutation of them."""
        ...

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, in a fixed order."""
        ...

    def corpus(self, split: str) -> Sequence[Passage]:
        """The passages that tasks of `split` are searched in; empty where there are none."""
        ...
