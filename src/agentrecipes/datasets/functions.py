"""Generated function calling in BFCL's form, small enough for the embedded model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.datasets.cases import make, thinking
from agentrecipes.datasets.knowledge import NAMES, RELATIONS
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Passage, Task

Count = Annotated[int, Field(ge=1)]
Kind = Literal["simple_python", "multiple", "parallel", "irrelevance"]
KINDS: tuple[Kind, ...] = ("simple_python", "multiple", "parallel", "irrelevance")
SPLITS = ("train", "dev", "test")
ARGUMENTS = tuple(sorted({relation for group in RELATIONS.values() for relation in group}))
CALLED, VALUES = NAMES[:40], NAMES[40:80]  # names of functions, and of what is given to them
Described = tuple[str, tuple[str, ...]]  # a function and its arguments


@component("dataset")
class Functions(Component):
    """``kal(author, mentor) sul(spouse, rival). mentor=tox author=ren``: who takes these two?

    A case shows one to three functions of two arguments and asks for a call by its arguments alone.
    Names are drawn for each case, so that the function has to be found. Of a case of irrelevance
    none takes what is asked. The teacher's thought goes through the functions in an order of its
    own, after `ramble` words about nothing. Which split a case is in follows from its text.
    """

    kinds: Annotated[tuple[Kind, ...], Field(min_length=1)] = KINDS
    ramble: Annotated[int, Field(ge=0)] = 12  # idle words in a thought, which nobody could foresee
    train: Count = 4000  # tasks
    dev: Count = 400
    test: Count = 400

    spoken: ClassVar[bool] = False
    has_corpus: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]] = ("bfcl",)
    symbols: ClassVar[frozenset[str]] = frozenset()
    fields: ClassVar[frozenset[str]] = frozenset(
        {"question", "category", "functions", "ground_truth", "type", "messages", "calls"}
    )

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split, the kinds in turn; asking again costs nothing."""
        count = {"train": self.train, "dev": self.dev, "test": self.test}[split]
        return _tasks(self.kinds, self.ramble, split=split, count=count)

    def corpus(self, split: str) -> Sequence[Passage]:
        """There is nothing to search in."""
        return ()


@lru_cache(maxsize=16)
def _tasks(kinds: tuple[Kind, ...], ramble: int, *, split: str, count: int) -> tuple[Task, ...]:
    random = Random(derive("functions", split))
    tasks: list[Task] = []
    seen: set[str] = set()
    while len(tasks) < count:
        kind = kinds[len(tasks) % len(kinds)]
        task = _case((f"{split}-{len(tasks)}", split), kind, ramble=ramble, random=random)
        mine = SPLITS[derive("functions split", task.question) % len(SPLITS)] == split
        if mine and task.question not in seen:
            seen.add(task.question)
            tasks.append(task)
    return tuple(tasks)


def _case(name: tuple[str, str], kind: Kind, *, ramble: int, random: Random) -> Task:
    shown = _functions(1 if kind in ("simple_python", "parallel") else 3, random)
    function, arguments = random.choice(shown)
    if kind == "irrelevance":
        shown = [one for one in shown if one[0] != function]
    asked = [
        {key: random.choice(VALUES) for key in random.sample(arguments, len(arguments))}
        for _ in range(2 if kind == "parallel" else 1)
    ]
    written = " ; ".join(", ".join(f"{k}={v}" for k, v in one.items()) for one in asked)
    question = f"{' '.join(map(_signature, shown))}. {written}"
    gold = [{function: {key: [value] for key, value in one.items()}} for one in asked]
    task = make(
        name,
        [("user", question)],
        category=kind,
        functions=[_document(one) for one in shown],
        gold=[] if kind == "irrelevance" else gold,
    )
    return thinking(task, _thought(shown, function, arguments, random=random, ramble=ramble))


def _functions(count: int, random: Random) -> list[Described]:
    """Functions of two arguments, no two of them the same pair."""
    names, pairs = random.sample(CALLED, count), random.sample(ARGUMENTS, 2 * count)
    return [(name, tuple(pairs[2 * n : 2 * n + 2])) for n, name in enumerate(names)]


def _thought(
    shown: Sequence[Described],
    function: str,
    arguments: Sequence[str],
    *,
    random: Random,
    ramble: int,
) -> str:
    """Idle words, what is needed, and each function with a verdict, in any order."""
    idle = random.choices(VALUES, k=ramble)
    told = [
        f"{name} has {' '.join(own)}: {'yes' if name == function else 'no'}."
        for name, own in random.sample(shown, len(shown))
    ]
    return " ".join([*idle, *(["."] if idle else []), f"need {' '.join(arguments)}.", *told])


def _signature(one: Described) -> str:
    return f"{one[0]}({', '.join(one[1])})"


def _document(one: Described) -> Mapping[str, Any]:
    properties = {key: {"type": "string", "description": key} for key in one[1]}
    parameters = {"type": "dict", "properties": properties, "required": list(one[1])}
    return {"name": one[0], "description": _signature(one), "parameters": parameters}
