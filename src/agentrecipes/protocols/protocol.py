"""What a protocol must do: text ↔ actions, and results ↔ text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol

from agentrecipes.records import Action, ToolResult

Described = str | Mapping[str, Any]
"""A tool as instructions speak of it: its name alone, or its schema (`Tool.schema`)."""


class ActionProtocol(Protocol):
    """How a policy writes its calls and answers, and how it is shown what came back.

    One that can call a single tool names it in a class attribute ``only_tool``.
    """

    @property
    def stop(self) -> tuple[str, ...]:
        """Strings that end a turn; they are kept as sampled."""
        ...

    @property
    def observation_role(self) -> Literal["inline", "user", "tool"]:
        """``inline``: the observation goes on in the assistant's message; else it is a message."""
        ...

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions for a model that has not been taught this protocol."""
        ...

    def parse(self, text: str) -> Action:
        """The action a text says. Never raises: what cannot be read is an action with an error."""
        ...

    def write(self, action: Action) -> str:
        """The text that `parse` reads back as `action`."""
        ...

    def render(self, results: Sequence[ToolResult]) -> str:
        """The observation that shows `results`, one per call and in their order."""
        ...

    def hint(self, error: str) -> str:
        """The observation after an action that could not be read: what was wrong, how to go on."""
        ...
