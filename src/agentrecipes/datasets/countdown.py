"""Countdown: reach a target with the four operations, each given number used once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from random import Random
from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.datasets.reading import SPLITS
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Passage, Task

Count = Annotated[int, Field(ge=1)]
Part = tuple[int, str]  # a value, and the expression that has it
LARGEST_TARGET = 999


@component("dataset")
class Countdown(Component):
    """``Make 65 from the numbers 19, 36, 55, 7``; the types say how many numbers, ``numbers-4``.

    Targets are made by an expression of whole numbers, so that every task can be solved; any
    expression counts that the reward ``countdown`` finds right. Which split a question is in
    follows from its text. After TinyZero (Pan et al. 2025, https://github.com/Jiayi-Pan/TinyZero).
    """

    numbers: Annotated[tuple[Annotated[int, Field(ge=2, le=6)], ...], Field(min_length=1)] = (3, 4)
    largest: Annotated[int, Field(ge=9, le=999)] = 99  # of the numbers; the least is 1
    train: Count = 1000  # tasks
    dev: Count = 200
    test: Count = 200

    spoken: ClassVar[bool] = True
    has_corpus: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]] = ("countdown",)
    symbols: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[frozenset[str]] = frozenset(
        {"question", "golden_answers", "type", "numbers", "target", "expression"}
    )

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, the types in turn; asking again costs nothing."""
        count = {"train": self.train, "dev": self.dev, "test": self.test}[split]
        return _tasks(self.numbers, self.largest, split=split, count=count)

    def corpus(self, split: str) -> Sequence[Passage]:
        """There is nothing to search in."""
        return ()


@lru_cache(maxsize=16)
def _tasks(sizes: tuple[int, ...], largest: int, *, split: str, count: int) -> tuple[Task, ...]:
    random = Random(derive("countdown", split, largest))
    seen: set[str] = set()
    tasks = []
    for place in range(count):
        size = sizes[place % len(sizes)]
        task = _drawn(random, size, largest)
        while _split_of(task.question) != split or task.question in seen:
            task = _drawn(random, size, largest)
        seen.add(task.question)
        golds = task.gold_answers
        tasks.append(Task(f"countdown-{split}-{place}", split, task.question, golds, task.data))
    return tuple(tasks)


def _split_of(question: str) -> str:
    return SPLITS[derive("countdown split", question) % len(SPLITS)]


def _drawn(random: Random, size: int, largest: int) -> Task:
    """A task whose target is no number of its own and has at most three digits."""
    while True:
        numbers = [random.randint(1, largest) for _ in range(size)]
        target, expression = _combined([(number, str(number)) for number in numbers], random)
        if 0 < target <= LARGEST_TARGET and target not in numbers:
            break
    listed = ", ".join(map(str, numbers))
    question = (
        f"Make {target} from the numbers {listed}. Write an expression with + - * / and "
        "parentheses that uses each number exactly once."
    )
    data = {"numbers": tuple(numbers), "target": target, "expression": expression}
    return Task("", "", question, (expression,), {**data, "type": f"numbers-{size}"})


def _combined(parts: list[Part], random: Random) -> Part:
    """All parts in one, two of them at a time, without fractions or numbers below 1."""
    parts = list(parts)
    while len(parts) > 1:
        one = parts.pop(int(random.random() * len(parts)))
        other = parts.pop(int(random.random() * len(parts)))
        larger, smaller = max(one, other), min(one, other)
        signs = "+*" + "-" * (larger[0] > smaller[0]) + "/" * (larger[0] % smaller[0] == 0)
        parts.append(_joined(larger, smaller, signs[int(random.random() * len(signs))]))
    [(value, expression)] = parts
    return value, expression


def _joined(one: Part, other: Part, sign: str) -> Part:
    value = {
        "+": one[0] + other[0],
        "-": one[0] - other[0],
        "*": one[0] * other[0],
        "/": one[0] // other[0],
    }[sign]
    return value, f"{_wrapped(one[1])} {sign} {_wrapped(other[1])}"


def _wrapped(expression: str) -> str:
    return expression if expression.isdecimal() else f"({expression})"
