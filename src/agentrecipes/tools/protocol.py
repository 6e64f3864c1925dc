"""What a tool must do: say what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from agentrecipes.records import Task, ToolResult


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


class Session(Protocol):
    """The tools of one episode, and what they remember of it."""

    @property
    def tools(self) -> Sequence[Tool]:
        """Described as their `Sessions` describes them."""
        ...

    async def start(self) -> None:
        """Be ready for calls; asked before every turn that calls one of the tools.

        Raises:
            TaskFailed: they cannot be had.
        """
        ...

    async def close(self) -> None:
        """Let go of everything; the episode is over."""
        ...


class Sessions(Protocol):
    """A part in a list of tools that gives each episode tools of its own: state, or a server.

    An environment knows it by its `session`; a plain `Tool` is shared by all episodes.
    """

    @property
    def schemas(self) -> Sequence[Mapping[str, Any]]:
        """What a policy is told of the tools of any session."""
        ...

    def session(self, task: Task, seed: int) -> Session:
        """The tools of an episode; the attempts of a group share the seed, never the session."""
        ...
