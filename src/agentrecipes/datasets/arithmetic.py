"""Generated sums for tool use: a question asks for the values of one or two expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Passage, Task

Count = Annotated[int, Field(ge=1)]
SPLITS = ("train", "dev", "test")
Solved = tuple[str, int]  # an expression and its value


@component("dataset")
class Arithmetic(Component):
    """``What is (417 - 52) * 38?``, or two such expressions at once; types are ``parts-operators``.

    Every value is a whole number above 0 that no number of the question tells. Which split a
    question is in follows from its text, so that the splits share none.
    """

    operators: Annotated[tuple[Annotated[int, Field(ge=1, le=4)], ...], Field(min_length=1)] = (
        *(1, 2, 3),  # in an expression
    )
    parts: Annotated[tuple[Annotated[int, Field(ge=1, le=3)], ...], Field(min_length=1)] = (1, 2)
    train: Count = 1000  # tasks
    dev: Count = 200
    test: Count = 200

    spoken: ClassVar[bool] = True
    has_corpus: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    symbols: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[frozenset[str]] = frozenset({"question", "golden_answers", "type", "calls"})

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, the types in turn; asking again costs nothing."""
        count = {"train": self.train, "dev": self.dev, "test": self.test}[split]
        kinds = tuple((parts, size) for parts in self.parts for size in self.operators)
        return _tasks(kinds, split, count)

    def corpus(self, split: str) -> Sequence[Passage]:
        """There is nothing to search in."""
        return ()


@lru_cache(maxsize=16)
def _tasks(kinds: tuple[tuple[int, int], ...], split: str, count: int) -> tuple[Task, ...]:
    random = Random(derive("arithmetic", split))
    seen: set[str] = set()
    tasks = []
    for number in range(count):
        parts, size = kinds[number % len(kinds)]
        solved = _fresh(random, (parts, size), split=split, seen=seen)
        expressions, values = zip(*solved, strict=True)
        question = _question(expressions)
        seen.add(question)
        gold = " and ".join(map(str, values))
        data = {"type": f"{parts}-{size}", "calls": (tuple(map(_call, expressions)),)}
        tasks.append(Task(f"{split}-{number}", split, question, (gold,), data))
    return tuple(tasks)


def _fresh(random: Random, kind: tuple[int, int], *, split: str, seen: set[str]) -> list[Solved]:
    """Expressions that belong to the split and make a new question."""
    parts, size = kind
    while True:
        solved = [_expression(random, size) for _ in range(parts)]
        question = _question([expression for expression, _ in solved])
        numbers = "".join(c if c.isdigit() else " " for c in question).split()
        fair = all(value > 0 and str(value) not in numbers for _, value in solved)
        mine = SPLITS[derive("arithmetic split", question) % len(SPLITS)] == split
        if fair and mine and question not in seen:
            return solved


def _expression(random: Random, operators: int) -> Solved:
    """An expression with so many operators, and its value."""
    number = random.randint(11, 999)
    text, value = str(number), number
    for place in range(operators):
        sign, other = random.choice("+-*"), random.randint(11, 99)
        text = f"({text}) {sign} {other}" if place else f"{text} {sign} {other}"
        value = {"+": value + other, "-": value - other, "*": value * other}[sign]
    return text, value


def _question(expressions: Sequence[str]) -> str:
    are = "are" if len(expressions) > 1 else "is"
    return f"What {are} {' and '.join(expressions)}?"


def _call(expression: str) -> Mapping[str, Any]:
    return {"tool": "calculator", "arguments": {"expression": expression}}
