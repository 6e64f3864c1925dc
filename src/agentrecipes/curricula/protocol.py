"""What a curriculum must do: pick the next tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentrecipes.records import Task

State = Mapping[str, Any]
"""Plain values only, so that a checkpoint is a dict."""


class Curriculum(Protocol):
    """Which tasks come next. State in, state out; the old state is never touched."""

    def pick(self, state: State, tasks: Sequence[Task], *, count: int, seed: int) -> list[Task]:
        """`count` tasks; the same state and seed give the same ones."""
        ...

    def observe(self, state: State, results: Mapping[str, float]) -> State:
        """The state after an iteration in which task id → mean return was seen."""
        ...
