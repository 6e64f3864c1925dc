"""Arithmetic by a tool: what has a value, and what is refused."""

from __future__ import annotations

import asyncio
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentrecipes.components import build
from agentrecipes.testing import ToolSuite
from agentrecipes.tools.calculator import Calculator, value_of


class TestCalculator(ToolSuite):
    good: ClassVar = {"expression": "(417 - 52) * 38"}

    @pytest.fixture
    def tool(self):
        return build("tool", "calculator")


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("(417 - 52) * 38", "13870"),
        (" -7 // 2 ", "-4"),
        ("7 / 2", "3.5"),
        ("6 / 2", "3"),
        ("2 ** 100", "1267650600228229401496703205376"),
        ("2 ** -1", "0.5"),
        ("17 % 5 + +3", "5"),
        ("max(2, abs(-9), sqrt(16))", "9"),
        ("round(2.345, 1)", "2.3"),
        ("1e300 * 10", "1e+301"),
    ],
)
def test_arithmetic_has_its_value(expression, text):
    result = asyncio.run(Calculator().call({"expression": expression}))
    assert (result.text, result.error) == (text, None)


@pytest.mark.parametrize(
    ("expression", "error"),
    [
        ("", "no arithmetic expression"),
        ("2 +", "no arithmetic expression"),
        ("1,000 + 1", "no arithmetic"),
        ("two + 2", "'two' is no arithmetic"),
        ("True + 1", "no arithmetic"),
        ("'a' * 3", "no arithmetic"),
        ("2 ^ 3", "no arithmetic"),
        ("__import__('os').getcwd()", "no arithmetic"),
        ("(lambda: 1)()", "no arithmetic"),
        ("max(*[1])", "no arithmetic"),
        ("max()", "no arithmetic"),
        ("sqrt(-1)", ""),
        ("(-8) ** 0.5", "no real number"),
        ("1 / 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("9 ** 9 ** 9", "too large"),
        ("9 ** 99999", "too large"),
        ("10.0 ** 999", "too large"),
        ("1e308 * 10", "too large"),
        ("2 ** 4900 * 2 ** 4900 * 2 ** 4900", "too large"),
        ("round(5, -10 ** 9)", "from -20 to 20 digits"),
        ("-" * 999 + "1", "no arithmetic expression"),
        ("1+" * 600 + "1", "longer than 1000 characters"),
        ("(" * 400 + "1" + ")" * 400, "no arithmetic expression"),
    ],
)
def test_what_has_no_value_is_an_error_that_says_why(expression, error):
    result = asyncio.run(Calculator().call({"expression": expression}))
    assert result.text == ""
    assert error in (result.error or "")
    assert result.error


@given(st.text("0123456789+-*/%.() eE", max_size=25))
def test_any_expression_ends(expression):
    result = asyncio.run(Calculator().call({"expression": expression}))
    assert bool(result.text) != bool(result.error)


@given(st.integers(-999, 999), st.integers(-999, 999), st.integers(1, 999))
def test_integers_are_exact(a, b, c):
    assert value_of(f"({a}) * ({b}) - ({a}) // {c}") == a * b - a // c
