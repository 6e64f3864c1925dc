"""Tools of an MCP server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

from pydantic import Field

from agentrecipes.components import Component, component, suggest
from agentrecipes.errors import MissingExtra, Problem, RecipeError
from agentrecipes.records import Task
from agentrecipes.tools import mcp_link
from agentrecipes.tools.mcp_servers import declared

NEEDED = "the tool mcp needs the package mcp. pip install 'agentrecipes[envs]'"


@component("tool")
class Mcp(Component):
    """All tools of `server`, or some: each episode starts a server, or a session, of its own.

    What is started is never said by a recipe: `server` is a name in a file of the user's, in the
    form of MCP clients, ``{"mcpServers": {"notes": {"command": "…", "args": […]}}}`` or ``{"url":
    "…"}``. That file is the one in AGENTRECIPES_MCP, else ``mcp.json`` where the command is given.
    """

    server: Annotated[str, Field(min_length=1)]  # its name in that file
    tools: tuple[str, ...] | None = None  # which of its tools; null: all
    start_seconds: Annotated[float, Field(gt=0.0)] = 60.0  # until it has told its tools

    def rules(self, stage: Any) -> Iterable[Problem]:
        """The package is there, and the server is declared; nothing is started."""
        if find_spec("mcp") is None:
            said, _, command = NEEDED.partition(". ")
            yield Problem("missing_extra", "server", said, f"{command}.")
        known = declared()
        if self.server not in known:
            found = f"no MCP server is called {self.server!r}"
            hint = f"{suggest(self.server, known)} Declare it in mcp.json, or set AGENTRECIPES_MCP."
            yield Problem("unknown_server", "server", found, hint)

    def require(self) -> None:
        """Look for what is needed.

        Raises:
            MissingExtra: the package is not installed.
        """
        if find_spec("mcp") is None:
            raise MissingExtra(NEEDED)

    @property
    def schemas(self) -> Sequence[Mapping[str, Any]]:
        """What the server says of its tools; it is started for that, once.

        Raises:
            MissingExtra: the package is not installed.
            RecipeError: the server is not declared, does not start, or lacks one of `tools`.
        """
        self.require()
        listed = mcp_link.listed(self._declared(), self.server, self.start_seconds)
        if self.tools is None:
            return listed
        by_name = {str(schema["name"]): schema for schema in listed}
        for name in self.tools:
            if name not in by_name:
                hint = suggest(name, by_name)
                raise RecipeError(f"the MCP server {self.server!r} has no tool {name!r}. {hint}")
        return [by_name[name] for name in self.tools]

    def session(self, task: Task, seed: int) -> mcp_link.Link:
        """A server of the episode's own, started before its first call."""
        return mcp_link.Link(
            self._declared(), self.server, self.schemas, seconds=self.start_seconds
        )

    def _declared(self) -> str:
        known = declared()
        if self.server not in known:
            hint = suggest(self.server, known)
            raise RecipeError(f"no MCP server is called {self.server!r}. {hint}")
        return known[self.server]
