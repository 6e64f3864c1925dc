"""A Python function with type hints becomes a tool: decorate it with `tool`.

@tool
def price(item: str, count: int = 1) -> str:
    \"\"\"What `count` pieces of an item cost.\"\"\"
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs

from agentrecipes.components import Component, component
from agentrecipes.errors import TaskFailed
from agentrecipes.records import Call, ToolResult

F = TypeVar("F", bound=Callable[..., Any])
PASSED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def tool(function: F) -> F:
    """Register `function` as a tool under its own name, and give it back as it was.

    Its parameters become the schema (``Annotated[int, Field(ge=1, description="…")]`` says more
    about one), the first paragraph of its docstring the description. Arguments are converted to the
    hinted types. Text is shown as it is, other plain data as JSON, None as nothing; an exception is
    shown to the policy as an error, `TaskFailed` ends the trajectory. A function that is no
    coroutine runs in a thread of its own: it must not change what other calls read, and one that
    never ends cannot be stopped, only left behind.

    Raises:
        TypeError: the function has no name or docstring, or a parameter has no hint.
    """
    schema = function_schema(function)
    adapter = _adapter(function)

    class Function(Component):
        """A function as a tool; it has no fields."""

        @property
        def schema(self) -> Mapping[str, Any]:  # type: ignore[override]  # pydantic's is obsolete
            """What a policy is told of the function."""
            return schema

        async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
            """What the function returned.

            Raises:
                TaskFailed: it returned what is neither text nor plain data.
            """
            call = Call(str(schema["name"]), dict(arguments))
            try:
                value = await _called(function, adapter, arguments)
            except ValidationError as error:
                return ToolResult(call, error=_faults(error))
            return ToolResult(call, as_text(value, call.tool))

    Function.__name__ = Function.__qualname__ = function.__name__
    Function.__doc__ = function.__doc__
    Function.__module__ = function.__module__
    component("tool", name=function.__name__)(Function)
    return function


def function_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """Name, description and parameters of a function, parameters as JSON Schema.

    Raises:
        TypeError: the function cannot be a tool; the message says why.
    """
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise TypeError(f"a tool needs a name, and {function!r} has none. Write it with def")
    about = inspect.getdoc(function)
    if not about:
        raise TypeError(f"{name} needs a docstring: it tells the policy what the tool does")
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in PASSED:
            raise TypeError(f"{name}: {parameter} cannot be given by name. Write it without a star")
        if parameter.name not in hints:
            raise TypeError(f"{name}: {parameter.name} has no type hint. Write what it takes")
    parameters = _adapter(function).json_schema()
    for about_one in parameters.get("properties", {}).values():
        about_one.pop("title", None)
    description = " ".join(about.partition("\n\n")[0].split())
    return {"name": name, "description": description, "parameters": parameters}


def _adapter(function: Callable[..., Any]) -> TypeAdapter[Any]:
    """Checks and converts the arguments of a call, then makes it."""
    kind: Any = function
    return TypeAdapter(kind)


def as_text(value: Any, name: str) -> str:
    """Text as it is, None as nothing, other plain data as JSON.

    Raises:
        TaskFailed: the value is something else.
    """
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise TaskFailed(
            f"the tool {name} returned a {type(value).__name__}, which is no text ({error}). "
            "Return text, or numbers, lists and dicts of them"
        ) from error


async def _called(
    function: Callable[..., Any], adapter: TypeAdapter[Any], arguments: Mapping[str, Any]
) -> Any:
    """What the function returns for arguments of the hinted types."""
    given = ArgsKwargs((), dict(arguments))
    if inspect.iscoroutinefunction(function):
        return await adapter.validate_python(given)
    return await in_thread(lambda: adapter.validate_python(given))


async def in_thread(work: Callable[[], Any]) -> Any:
    """What `work` returns, run in a daemon thread of its own.

    asyncio's own pool has few threads and waits for all of them when the loop closes, so that one
    that hangs would hang the run.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

    def settle(value: Any, error: BaseException | None) -> None:
        if not done.done():
            done.set_result((value, error))

    def run() -> None:
        value, failed = None, None
        try:
            value = work()
        except BaseException as error:
            failed = error
        with suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(settle, value, failed)

    threading.Thread(target=run, daemon=True, name="tool").start()
    value, error = await done
    if error is None:
        return value
    if isinstance(error, Exception):
        raise error
    raise RuntimeError(f"{type(error).__name__}: {error}")  # sys.exit() ends a tool, not the run


def _faults(error: ValidationError) -> str:
    lines = error.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, line['loc']))}: {line['msg']}" for line in lines)
