"""What a tool must do: say what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from agentrecipes.records import ToolResult


class Tool(Protocol):
    """One action's effect. The environment decides what it means."""

    @property
    def schema(self) -> Mapping[str, Any]:
        """``{"name", "description", "parameters"}``, parameters as JSON Schema."""
        ...

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """What happened; an error of the caller's making is a result with `error`.

        Raises:
            TaskFailed: the tool itself failed.
        """
        ...
