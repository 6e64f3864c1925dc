"""Carries out the calls of a turn side by side; whatever a tool does, each call has a result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from agentrecipes.components import Fields, suggest
from agentrecipes.errors import AgentRecipesError, TaskFailed
from agentrecipes.records import Call, ToolResult
from agentrecipes.tools.protocol import Tool
from agentrecipes.tools.schema import faults


class Limits(Fields):
    """What one call may take."""

    seconds: Annotated[float, Field(gt=0.0)] = 10.0  # then the call's result is an error
    characters: Annotated[int, Field(ge=1)] = 100_000  # of a result; what is longer is cut


@dataclass(frozen=True, slots=True)
class Desk:
    """Tools by name, and what one call of them may take."""

    tools: Mapping[str, Tool]
    limits: Limits

    async def answer(self, calls: Sequence[Call]) -> list[ToolResult]:
        """One result per call and in their order; errors of calls and tools are results too.

        Raises:
            TaskFailed: a tool said so, or gave something that is no result.
        """
        running = [asyncio.create_task(self._carry_out(call)) for call in calls]
        try:
            return list(await asyncio.gather(*running))
        finally:  # a tool that failed ends the turn; the others are not left running
            for task in running:
                task.cancel()

    async def _carry_out(self, call: Call) -> ToolResult:
        tool = self.tools.get(call.tool)
        if tool is None:
            known = suggest(call.tool, self.tools)
            return ToolResult(call, error=f"no tool is called {call.tool!r}. {known}")
        wrong = faults(call.arguments, tool.schema.get("parameters", {}))
        if wrong:
            return ToolResult(call, error="; ".join(wrong))
        try:
            async with asyncio.timeout(self.limits.seconds) as limit:
                result = await tool.call(call.arguments)
        except AgentRecipesError:
            raise
        except (Exception, SystemExit) as error:  # the boundary to the code of tools
            if limit.expired():
                return ToolResult(call, error=f"no result within {self.limits.seconds:g} s")
            return self._cut(ToolResult(call, error=f"{type(error).__name__}: {error}"))
        return self._cut(replace(_checked(result, call), call=call))

    def _cut(self, result: ToolResult) -> ToolResult:
        """The result in characters that UTF-8 has, and not more of them than the limit."""
        error = None if result.error is None else self._short(result.error)
        return replace(result, text=self._short(result.text), error=error)

    def _short(self, text: str) -> str:
        most = self.limits.characters
        kept = text[:most].encode("utf-8", "replace").decode("utf-8")
        return kept if len(text) <= most else f"{kept} … (cut: {len(text)} characters)"


def _checked(result: object, call: Call) -> ToolResult:
    """The result, if it is one.

    Raises:
        TaskFailed: the tool gave something else.
    """
    if not isinstance(result, ToolResult):
        raise TaskFailed(f"the tool {call.tool} gave a {type(result).__name__}. Give a ToolResult")
    for text in (result.text, result.error or ""):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise TaskFailed(f"the tool {call.tool} gave a result that says a {kind}. Give text")
    return result
