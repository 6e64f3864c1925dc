"""Arithmetic: the tool of RL's smallest tool tasks."""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from agentrecipes.components import Component, component
from agentrecipes.records import Call, ToolResult

Number = int | float

LONGEST = 1000  # characters of an expression
DIGITS = 20  # most that round takes
BITS = 10_000  # longest integer that is worked with; about 3,000 digits
OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
SIGNS: Mapping[type[ast.AST], Callable[[Any], Number]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    "abs": abs,
    "max": max,
    "min": min,
    "round": lambda *values: _round(*values),
    "sqrt": math.sqrt,
}
TOO_LARGE = "the number is too large"
HINT = "Write numbers, + - * / // % **, parentheses, and abs, max, min, round, sqrt."
SCHEMA = {
    "name": "calculator",
    "description": "The value of an arithmetic expression in Python's notation.",
    "parameters": {
        "type": "object",
        "properties": {"expression": {"type": "string"}},
        "required": ["expression"],
    },
}


@component("tool")
class Calculator(Component):
    """Integers exactly, other numbers as Python's floats; 6 / 2 is shown as 3.

    The expression is read with `ast` and worked out here, never run: names are those of five
    functions, and integers are limited in length, so that no expression takes long.
    """

    @property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]  # pydantic's is obsolete
        """One argument: the expression."""
        return SCHEMA

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """The value as text, or the error that says why there is none."""
        call = Call("calculator", dict(arguments))
        try:
            return ToolResult(call, shown(value_of(str(arguments.get("expression", "")))))
        except ValueError as error:
            return ToolResult(call, error=str(error))


def value_of(expression: str) -> Number:
    """The value of an expression.

    Raises:
        ValueError: it is no arithmetic, or has no value; the message says why.
    """
    if len(expression) > LONGEST:
        raise ValueError(f"the expression is longer than {LONGEST} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise ValueError("division by zero") from None
    except OverflowError:
        raise ValueError(TOO_LARGE) from None
    except (SyntaxError, MemoryError, RecursionError, TypeError):
        raise ValueError(f"this is no arithmetic expression. {HINT}") from None


def shown(value: Number) -> str:
    """A number as text; a whole float as an integer."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < 2**53
    return str(int(value) if whole else value)


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in SIGNS:
            return SIGNS[type(op)](_value(operand))
        case ast.BinOp(left=left, op=ast.Pow(), right=right):
            return _bounded(_power(_value(left), _value(right)))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return _bounded(OPERATORS[type(op)](_value(left), _value(right)))
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            return _bounded(FUNCTIONS[name](*[_value(one) for one in args]))
    raise ValueError(f"{ast.unparse(node)[:40]!r} is no arithmetic. {HINT}")


def _power(base: Number, exponent: Number) -> Any:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and int(base).bit_length() * abs(exponent) > BITS:
        raise ValueError(TOO_LARGE)
    return base**exponent


def _round(value: Number, digits: Number = 0) -> Number:
    """`round` with a bearable number of digits: 10**digits is worked out for integers."""
    if digits not in range(-DIGITS, DIGITS + 1):
        raise ValueError(f"round takes from {-DIGITS} to {DIGITS} digits")
    return round(value, int(digits))


def _bounded(value: Any) -> Number:
    """`value`, if it is a real number of bearable size."""
    if isinstance(value, int):
        if value.bit_length() > BITS:
            raise ValueError(TOO_LARGE)
        return value
    if not isinstance(value, float):
        raise ValueError("the value is no real number")
    if not math.isfinite(value):
        raise ValueError(TOO_LARGE)
    return value
