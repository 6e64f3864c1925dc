"""Carries out the calls of a turn side by side; whatever a tool does, each call has a result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

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
    told: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # schemas as they were told

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
            said = f"no tool is called {call.tool!r}. {known}"
            return ToolResult(call, error=said, outcome="unknown_tool")
        schema = self.told.get(call.tool, tool.schema)
        if tool.schema != schema:
            said = "the tool is no longer what it was said to be, and was not called"
            return ToolResult(call, error=said, outcome="changed")
        wrong = faults(call.arguments, schema.get("parameters", {}))
        if wrong:
            return ToolResult(call, error="; ".join(wrong), outcome="wrong_arguments")
        try:
            async with asyncio.timeout(self.limits.seconds) as limit:
                result = await tool.call(call.arguments)
        except AgentRecipesError:
            raise
        except (Exception, SystemExit) as error:  # the boundary to the code of tools
            if limit.expired():
                said = f"no result within {self.limits.seconds:g} s"
                return ToolResult(call, error=said, outcome="late")
            said = f"{type(error).__name__}: {error}"
            return self._cut(ToolResult(call, error=said, outcome="raised"))
        checked = _checked(result, call)
        outcome = "result" if checked.error is None else "error"
        return self._cut(replace(checked, call=call, outcome=outcome))

    def _cut(self, result: ToolResult) -> ToolResult:
        """The result in characters that UTF-8 has, and not more of them than the limit."""
        error = None if result.error is None else self._short(result.error)
        most = self.limits.characters
        outcome = "cut" if error is None and len(result.text) > most else result.outcome
        return replace(result, text=self._short(result.text), error=error, outcome=outcome)

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
