"""Python functions as tools: their schema, their arguments, and whatever they give back."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from agentrecipes.components import build
from agentrecipes.errors import TaskFailed
from agentrecipes.testing import ToolSuite
from agentrecipes.tools.function import function_schema, tool


@dataclass
class Place:
    street: str
    number: int


@tool
def cost(
    item: str,
    count: Annotated[int, Field(ge=1, description="how many")] = 1,
    size: Literal["s", "m"] = "s",
) -> str:
    """What `count` pieces
    of an item cost.

    In euros; this paragraph is for readers of the code.
    """
    return f"{item} {size}: {count * 3}"


@tool
async def distance(of: Place, to: Place) -> int:
    """How many houses lie between two places."""
    await asyncio.sleep(0)
    return abs(of.number - to.number)


@tool
def give(kind: str) -> Any:
    """Something of that kind, or trouble."""
    if kind in TROUBLE:
        raise TROUBLE[kind]
    return GIVEN[kind]


TROUBLE = {
    "key": KeyError("tea"),
    "stop": StopIteration("over"),
    "exit": SystemExit(3),
    "cancel": asyncio.CancelledError(),
    "task": TaskFailed("the shop burned down"),
}
GIVEN: dict[str, Any] = {
    "text": " as it is\n",
    "nothing": None,
    "number": 2.5,
    "truth": True,
    "list": ["é", 1, None],
    "dict": {"a": (1, 2)},
    "set": {1},
    "bytes": b"x",
    "object": object(),
    "nested": [{"a": {1}}],
}


class TestCost(ToolSuite):
    good: ClassVar = {"item": "tea", "count": 2}

    @pytest.fixture
    def tool(self):
        return build("tool", "cost")


class TestDistance(ToolSuite):
    good: ClassVar = {
        "of": {"street": "Elm", "number": 4},
        "to": {"street": "Elm", "number": 11},
    }

    @pytest.fixture
    def tool(self):
        return build("tool", "distance")


def called(name: str, **arguments: object):
    return asyncio.run(build("tool", name).call(arguments))


def test_hints_and_docstring_become_the_schema():
    assert build("tool", "cost").schema == {
        "name": "cost",
        "description": "What `count` pieces of an item cost.",
        "parameters": {
            "type": "object",
            "properties": {
                "item": {"type": "string"},
                "count": {
                    "type": "integer",
                    "minimum": 1,
                    "default": 1,
                    "description": "how many",
                },
                "size": {"type": "string", "enum": ["s", "m"], "default": "s"},
            },
            "required": ["item"],
            "additionalProperties": False,
        },
    }


def test_the_function_stays_a_function():
    assert cost("tea", 2) == "tea s: 6"
    assert build("tool", "cost").dump() == {"name": "cost"}


def test_arguments_are_converted_to_the_hinted_types():
    places = {"of": {"street": "Elm", "number": 4}, "to": {"street": "Elm", "number": 11}}
    assert called("distance", **places).text == "7"
    assert called("cost", item="tea").text == "tea s: 3"


def test_an_argument_of_another_type_is_an_error_of_the_caller():
    result = called("distance", of={"street": "Elm", "number": "four"}, to={})
    assert "of.number: Input should be a valid integer" in (result.error or "")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("text", " as it is\n"),
        ("nothing", ""),
        ("number", "2.5"),
        ("truth", "true"),
        ("list", '["é", 1, null]'),
        ("dict", '{"a": [1, 2]}'),
    ],
)
def test_plain_data_becomes_text(kind, text):
    result = called("give", kind=kind)
    assert (result.text, result.error) == (text, None)


@pytest.mark.parametrize("kind", ["set", "bytes", "object", "nested"])
def test_what_is_no_plain_data_fails_the_tool(kind):
    with pytest.raises(TaskFailed, match=r"the tool give returned a .*Return text"):
        called("give", kind=kind)


@pytest.mark.parametrize(
    ("kind", "error"),
    [("key", KeyError), ("stop", RuntimeError), ("exit", RuntimeError), ("cancel", RuntimeError)],
)
def test_trouble_in_a_function_is_an_ordinary_exception(kind, error):
    with pytest.raises(error):
        called("give", kind=kind)
    with pytest.raises(TaskFailed, match="burned"):
        called("give", kind="task")


def test_functions_run_side_by_side_in_threads_of_their_own():
    barrier = threading.Barrier(40, timeout=20)

    @tool
    def meet() -> int:
        """Waits until forty of them are there."""
        return barrier.wait()

    async def forty() -> list[Any]:
        part = build("tool", "meet")
        return await asyncio.gather(*(part.call({}) for _ in range(40)))

    assert {result.text for result in asyncio.run(forty())} == {str(n) for n in range(40)}


def test_a_function_that_hangs_does_not_keep_the_loop_from_closing():
    release = threading.Event()

    @tool
    def hang() -> None:
        """Hangs."""
        release.wait(60)

    async def impatient() -> None:
        async with asyncio.timeout(0.05):
            await build("tool", "hang").call({})

    before = set(threading.enumerate())
    with pytest.raises(TimeoutError):
        asyncio.run(impatient())
    [left] = set(threading.enumerate()) - before  # the loop is closed, and it is still at it
    release.set()
    left.join(60)
    assert not left.is_alive()


def nameless(*items: str) -> str:
    """Takes any number."""
    return str(items)


def hintless(item):
    """Takes something."""
    return item


def silent(item: str) -> str:
    return item


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (nameless, "cannot be given by name"),
        (hintless, "item has no type hint"),
        (silent, "needs a docstring"),
        (lambda: None, "has none. Write it with def"),
    ],
)
def test_a_function_that_cannot_be_a_tool_says_why(function, said):
    with pytest.raises(TypeError, match=said):
        function_schema(function)
