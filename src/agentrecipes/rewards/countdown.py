"""Whether an expression makes the target out of the given numbers."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View
from agentrecipes.rewards.quantities import boxed

LONGEST = 200  # characters of an answer that is read


@component("reward")
class Countdown(Component):
    """1 if the answer has the task's ``target`` as its value and uses its ``numbers``, else 0.

    The answer is whole numbers, + - * /, and parentheses; ``= target`` after it is not read. It is
    worked out exactly, with fractions, and never run. Null without numbers or target. TinyZero (Pan
    et al. 2025, https://github.com/Jiayi-Pan/TinyZero) gives 0.1 for an expression that is wrong.
    """

    use: Literal["each", "some"] = "each"  # each number exactly once, or at most once
    expression: Annotated[float, Field(ge=0.0, le=1.0)] = 0.0  # for a wrong one that can be read

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"numbers", "target"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """A trajectory that never answered scores 0."""
        numbers, target = view.task.data.get("numbers"), view.task.data.get("target")
        if not isinstance(numbers, list | tuple) or not isinstance(target, int):
            return None
        if view.answer is None:
            return 0.0
        tree = _tree(boxed(view.answer).partition("=")[0].strip())
        if tree is None:
            return 0.0
        used, given = Counter(_numbers(tree)), Counter(numbers)
        fits = used == given if self.use == "each" else used <= given
        return 1.0 if fits and _value(tree) == target else self.expression


def _tree(text: str) -> ast.expr | None:
    """The expression, if it is one."""
    if len(text) > LONGEST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text.replace("×", "*").replace("÷", "/"), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    allowed = (ast.BinOp, ast.Constant, ast.Add, ast.Sub, ast.Mult, ast.Div)
    plain = all(isinstance(node, allowed) for node in ast.walk(tree))
    return tree if plain and all(type(n) is int for n in _constants(tree)) else None


def _constants(tree: ast.expr) -> Iterator[object]:
    return (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant))


def _numbers(tree: ast.expr) -> Iterator[int]:
    return (value for value in _constants(tree) if isinstance(value, int))


def _value(tree: ast.expr) -> Fraction | None:
    """The value; None where something is divided by zero."""
    if isinstance(tree, ast.Constant):
        return Fraction(str(tree.value))
    assert isinstance(tree, ast.BinOp)  # as `_tree` has seen to
    one, other = _value(tree.left), _value(tree.right)
    if one is None or other is None:
        return None
    match tree.op:
        case ast.Add():
            return one + other
        case ast.Sub():
            return one - other
        case ast.Mult():
            return one * other
    return one / other if other else None
