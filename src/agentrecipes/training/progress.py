"""What a run tells whoever watches it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class Progress(Protocol):
    """A watcher; the command line's shows a bar, the sampled score and the time left."""

    def stage(self, name: str, algorithm: str, total: int) -> None:
        """A stage of `total` steps or iterations begins."""
        ...

    def advance(self, step: int, figures: Mapping[str, float]) -> None:
        """`step` of the stage is done."""
        ...

    def evaluation(self, row: Mapping[str, Any]) -> None:
        """An evaluation, with the keys of the summary."""
        ...

    def note(self, text: str) -> None:
        """Something the reader of the log should know."""
        ...


class Silent:
    """Watches nothing."""

    def stage(self, name: str, algorithm: str, total: int) -> None: ...

    def advance(self, step: int, figures: Mapping[str, float]) -> None: ...

    def evaluation(self, row: Mapping[str, Any]) -> None: ...

    def note(self, text: str) -> None: ...
