"""The one door to ``mcp``: a server is started, asked for its tools, called, and stopped."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from agentrecipes.errors import RecipeError, TaskFailed
from agentrecipes.records import Call, ToolResult

STOP_SECONDS = 15.0  # for a server to end; the library kills it long before


@lru_cache(maxsize=64)
def listed(declared: str, name: str, seconds: float) -> tuple[Mapping[str, Any], ...]:
    """What the server says of its tools; it is started for that and stopped again.

    Raises:
        RecipeError: it cannot be started or asked.
    """
    found: list[Any] = []

    async def ask() -> None:
        link = Link(declared, name, (), seconds=seconds)
        try:
            found.append(await link.told())
        finally:
            await link.close()

    def work() -> None:
        try:
            asyncio.run(ask())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=work, name="mcp", daemon=True)  # a loop may be running here
    thread.start()
    thread.join(seconds + STOP_SECONDS)
    told = found[-1] if found else TaskFailed("it does not end")
    if isinstance(told, Exception):
        raise RecipeError(f"{told}. Check its declaration, and run its command by hand") from told
    return tuple(told)


@dataclass(frozen=True, slots=True)
class Remote:
    """One tool of a running server."""

    link: Link
    schema: Mapping[str, Any]

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """What the server says, texts one below the other.

        Raises:
            TaskFailed: the server could not be started, or is gone.
        """
        return await self.link.call(Call(str(self.schema["name"]), dict(arguments)))


class Link:
    """A server while an episode lasts, started before its first call.

    Contexts of the library are entered and left in one task, the keeper, wherever calls come from.
    """

    def __init__(
        self, declared: str, name: str, schemas: Sequence[Mapping[str, Any]], *, seconds: float
    ) -> None:
        self._declared: Mapping[str, Any] = json.loads(declared)
        self._name, self._schemas, self._seconds = name, schemas, seconds
        self._keeper: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[tuple[Any, list[Mapping[str, Any]]]] | None = None
        self._over = asyncio.Event()

    @property
    def tools(self) -> Sequence[Remote]:
        """As they were described to the policy."""
        return [Remote(self, schema) for schema in self._schemas]

    async def start(self) -> None:
        """Start the server, unless it runs.

        Raises:
            TaskFailed: it does not start in time, or ends.
        """
        await self._session()

    async def told(self) -> list[Mapping[str, Any]]:
        """What the running server says of its tools.

        Raises:
            TaskFailed: it does not start in time, or ends.
        """
        return (await self._session())[1]

    async def call(self, call: Call) -> ToolResult:
        """One call; a tool that is no longer as it was described is not called.

        Raises:
            TaskFailed: the server could not be started, or is gone.
        """
        session, told = await self._session()
        wanted = next((one for one in self._schemas if one["name"] == call.tool), None)
        if wanted not in told:
            said = "the server describes the tool differently now, and it was not called"
            return ToolResult(call, error=said)
        from mcp import MCPError

        try:
            result = await session.call_tool(call.tool, dict(call.arguments))
        except MCPError as error:
            if self._keeper is None or self._keeper.done() or _is_closed(error):
                raise TaskFailed(f"the MCP server {self._name!r} is gone: {error}") from error
            return ToolResult(call, error=str(error))
        text = "\n".join(_text(block) for block in result.content)
        return ToolResult(call, "", error=text) if result.is_error else ToolResult(call, text)

    async def close(self) -> None:
        """Stop the server and wait for its end.

        Raises:
            TaskFailed: it does not end.
        """
        if self._keeper is None:
            return
        self._over.set()
        if self._ready is not None and not self._ready.done():
            self._keeper.cancel()
        done, _ = await asyncio.wait([self._keeper], timeout=STOP_SECONDS)
        if not done:
            self._keeper.cancel()
            raise TaskFailed(f"the MCP server {self._name!r} does not end")

    async def _session(self) -> tuple[Any, list[Mapping[str, Any]]]:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self._keeper = asyncio.create_task(self._keep(self._ready))
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.shield(self._ready)
        except TimeoutError as error:
            said = f"the MCP server {self._name!r} told no tools within {self._seconds:g} s"
            raise TaskFailed(said) from error

    async def _keep(self, ready: asyncio.Future[tuple[Any, list[Mapping[str, Any]]]]) -> None:
        """Hold the server until the episode is over."""
        from mcp import ClientSession

        try:
            async with AsyncExitStack() as stack:
                read, write = await self._connected(stack)
                session = await stack.enter_async_context(ClientSession(read, write))
                await session.initialize()
                told = (await session.list_tools()).tools
                ready.set_result((session, [_schema(tool) for tool in told]))
                await self._over.wait()
        except Exception as error:  # the boundary to a program of somebody else's
            if not ready.done():
                said = f"the MCP server {self._name!r} cannot be started: {_reason(error)}"
                ready.set_exception(TaskFailed(said))

    async def _connected(self, stack: AsyncExitStack) -> tuple[Any, Any]:
        declared = self._declared
        if "url" in declared:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            waits = httpx2.Timeout(30.0, read=300.0)  # a call's own limit is the environment's
            made = httpx2.AsyncClient(headers=declared.get("headers"), timeout=waits)
            client = await stack.enter_async_context(made)
            connecting = streamable_http_client(declared["url"], http_client=client)
            return await stack.enter_async_context(connecting)
        from mcp import StdioServerParameters
        from mcp.client.stdio import stdio_client

        about = {key: declared[key] for key in ("args", "env", "cwd") if key in declared}
        errors = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - the stack closes it
        quiet = stack.enter_context(errors)
        parameters = StdioServerParameters(command=declared["command"], **about)
        return await stack.enter_async_context(stdio_client(parameters, errlog=quiet))


def _schema(tool: Any) -> Mapping[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description or tool.name,
        "parameters": tool.input_schema,
    }


def _text(block: Any) -> str:
    """A block of a result; what is no text is named."""
    return str(block.text) if block.type == "text" else f"[{block.type}]"


def _is_closed(error: Exception) -> bool:
    from mcp_types import CONNECTION_CLOSED

    return getattr(getattr(error, "error", None), "code", None) == CONNECTION_CLOSED


def _reason(error: BaseException) -> str:
    """Of a group of errors, the first one."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"
