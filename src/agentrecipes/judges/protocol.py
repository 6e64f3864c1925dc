"""What a judge must do: answer prompts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Judge(Protocol):
    """Who answers a judged reward: a server, a local model, a recording."""

    @property
    def asks_at_once(self) -> int:
        """How many prompts it can work on side by side."""
        ...

    @property
    def timeout_seconds(self) -> float:
        """Longest wait for one prompt, everything included."""
        ...

    def identity(self) -> Mapping[str, Any]:
        """All that its replies depend on besides the prompt; plain values, no secret."""
        ...

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """One reply per prompt, in their order.

        Raises:
            TaskFailed: no reply within the limits.
        """
        ...
