"""What replay must do: keep trajectories and give them again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentrecipes.records import Scored


class Replay(Protocol):
    """What is kept and trained on again. State is plain, and part of a checkpoint."""

    def add(
        self, state: Mapping[str, Any], scored: Sequence[Scored], *, iteration: int
    ) -> Mapping[str, Any]:
        """The state with those trajectories that pass the filter, within the capacity."""
        ...

    def draw(self, state: Mapping[str, Any], *, iteration: int, seed: int) -> list[Scored]:
        """Trajectories to train on beside the fresh ones."""
        ...
