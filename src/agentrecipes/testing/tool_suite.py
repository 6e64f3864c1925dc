"""What every tool must hold; `suites` says how to use one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from agentrecipes.environments.calling import Desk, Limits
from agentrecipes.records import Call, ToolResult
from agentrecipes.tools.protocol import Tool
from agentrecipes.tools.schema import faults

ODD: Sequence[Any] = ("", "\x00", "é" * 5000, -1, 10**30, 1e308, True, None, [], {}, [[1]], {"": 0})


class ToolSuite:
    """Fixture: ``tool``. Set `good` to arguments that it takes."""

    good: ClassVar[Mapping[str, Any]]  # arguments of a call that succeeds
    seconds = 5.0  # longest time of a call

    def answer(self, tool: Tool, arguments: Mapping[str, Any]) -> ToolResult:
        """What an environment makes of a call of the tool."""
        name = str(tool.schema["name"])
        desk = Desk({name: tool}, Limits(seconds=self.seconds))
        [result] = asyncio.run(desk.answer([Call(name, arguments)]))
        return result

    def test_its_schema_is_plain_and_describes_every_argument(self, tool: Tool) -> None:
        schema = tool.schema
        assert json.loads(json.dumps(schema)) == schema
        assert str(schema["name"]).isidentifier()
        assert str(schema["description"]).strip()
        parameters = schema["parameters"]
        assert parameters["type"] == "object"
        assert set(parameters.get("required", ())) <= set(parameters.get("properties", {}))
        assert set(self.good) <= set(parameters.get("properties", {}))

    def test_a_good_call_succeeds_and_says_something(self, tool: Tool) -> None:
        assert faults(self.good, tool.schema["parameters"]) == []
        result = self.answer(tool, self.good)
        assert result.error is None
        assert result.text or result.passages

    def test_the_same_call_gives_the_same_result(self, tool: Tool) -> None:
        assert self.answer(tool, self.good) == self.answer(tool, self.good)

    def test_arguments_that_are_missing_unknown_or_odd_give_results(self, tool: Tool) -> None:
        properties = tool.schema["parameters"].get("properties", {})
        wrong = self.answer(tool, {**self.good, "no such argument": 1})
        assert "no such argument" in (wrong.error or "")
        for name in tool.schema["parameters"].get("required", ()):
            missing = {key: value for key, value in self.good.items() if key != name}
            assert self.answer(tool, missing).error
        for name in properties:
            for odd in ODD:
                result = self.answer(tool, {**self.good, name: odd})
                assert isinstance(result.text, str)
                assert isinstance(result.error, str | None)
