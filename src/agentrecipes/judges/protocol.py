"""What a judge must do: answer prompts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Judge(Protocol):
    """Who answers a judged reward: a server, a local model, a recorded cache."""

    async def answer(self, prompts: Sequence[str]) -> list[str]:
        """One reply per prompt, in their order.

        Raises:
            TaskFailed: no reply within the limits.
        """
        ...
