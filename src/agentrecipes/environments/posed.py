"""What environments whose tasks stand in a dataset have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from agentrecipes.components import Component, PartOf
from agentrecipes.datasets.protocol import Dataset
from agentrecipes.records import Task


class Posed(Component):
    """Poses a dataset's tasks; no names in them are exchanged."""

    dataset: Annotated[Any, PartOf("dataset")]

    @property
    def symbols(self) -> frozenset[str]:
        """None: names stay as they are."""
        return frozenset()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The rewards that measure the dataset."""
        return self._dataset.metrics

    def tasks(self, split: str) -> Sequence[Task]:
        """The dataset's tasks of a split."""
        return self._dataset.tasks(split)

    @property
    def _dataset(self) -> Dataset:
        dataset: Dataset = self.dataset
        return dataset
