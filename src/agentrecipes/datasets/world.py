"""The generated world: questions of one to three look-ups, and the passages that answer them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from random import Random
from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from agentrecipes.components import Component, component
from agentrecipes.datasets.knowledge import (
    HALVES,
    NAMES,
    Question,
    chain,
    conjunction,
    world,
)
from agentrecipes.numerics.streams import derive
from agentrecipes.records import Passage, Task

Count = Annotated[int, Field(ge=1)]
MIXED = {
    "train": (0, ("A",)),
    "dev": (0, ("B",)),
    "test": (1, HALVES),
}  # world and halves of a split
REDRAWS = (
    50  # tries to avoid a question that was drawn before; small worlds run out of one-hop ones
)


@component("dataset")
class World(Component):
    """Chains (``chain-2``: the author's city) and conjunctions (``conjunction-2``: two values).

    Train asks about one half of a world's entities and dev about the other; test asks about another
    world. The types are interleaved, so that every prefix of a split has them in their shares.
    """

    chains: tuple[Annotated[int, Field(ge=1, le=4)], ...] = (1, 2, 3)  # numbers of hops
    conjunctions: tuple[Annotated[int, Field(ge=2, le=3)], ...] = (2, 3)  # numbers of parts
    mix: Mapping[str, Annotated[float, Field(gt=0.0)]] | None = None  # share by type; null: equal
    train: Count = 4000  # tasks
    dev: Count = 600
    test: Count = 600
    world_seed: Annotated[int, Field(ge=0)] = 0  # other seed, other facts

    spoken: ClassVar[bool] = False
    metrics: ClassVar[tuple[str, ...]] = ("exact_match",)
    fields: ClassVar[frozenset[str]] = frozenset(
        {"question", "golden_answers", "type", "hops", "plan", "supporting_ids"}
    )
    symbols: ClassVar[frozenset[str]] = frozenset(NAMES)

    @model_validator(mode="after")
    def _has_types(self) -> World:
        if not self.types:
            raise ValueError("chains and conjunctions are both empty; name at least one")
        if unknown := sorted(set(self.mix or {}) ^ set(self.types) if self.mix else ()):
            raise ValueError(f"mix must name each of {', '.join(self.types)}; check {unknown[0]!r}")
        return self

    @property
    def types(self) -> tuple[str, ...]:
        """The kinds of question, each once."""
        names = [f"chain-{hops}" for hops in self.chains]
        names += [f"conjunction-{parts}" for parts in self.conjunctions]
        return tuple(dict.fromkeys(names))

    def tasks(self, split: str) -> Sequence[Task]:
        """The tasks of a split; asking again costs nothing."""
        shares = tuple((self.mix or {}).get(kind, 1.0) for kind in self.types)
        count = {"train": self.train, "dev": self.dev, "test": self.test}[split]
        return _tasks(self.types, shares, count=count, split=split, seed=self.world_seed)

    def corpus(self, split: str) -> Sequence[Passage]:
        """All passages of the split's world; train and dev share theirs."""
        return world(_seed(self.world_seed, split)).passages


def _seed(world_seed: int, split: str) -> int:
    """Test worlds have odd seeds, the others even ones: no test world is ever a training world."""
    return 2 * world_seed + MIXED[split][0]


@lru_cache(maxsize=32)
def _tasks(
    types: tuple[str, ...], shares: tuple[float, ...], *, count: int, split: str, seed: int
) -> tuple[Task, ...]:
    streams = {kind: Random(derive("questions", seed, split, kind)) for kind in types}
    seen: set[str] = set()
    tasks = []
    for number, kind in enumerate(interleave(types, shares, count)):
        question = _fresh_question(kind, split, seed=seed, random=streams[kind], seen=seen)
        data = {"type": kind, **_solution(question)}
        tasks.append(Task(f"{split}-{number}", split, question.text, question.answers, data))
    return tuple(tasks)


def interleave(names: Sequence[str], shares: Sequence[float], count: int) -> list[str]:
    """`count` names in which every prefix has the shares as nearly as whole numbers allow."""
    total = sum(shares)
    given = [0] * len(names)
    order = []
    for place in range(1, count + 1):
        lag = [place * share / total - n for share, n in zip(shares, given, strict=True)]
        index = lag.index(max(lag))
        given[index] += 1
        order.append(names[index])
    return order


def _fresh_question(
    kind: str, split: str, *, seed: int, random: Random, seen: set[str]
) -> Question:
    place, halves = world(_seed(seed, split)), MIXED[split][1]
    form, _, size = kind.partition("-")
    for _ in range(REDRAWS):
        if form == "chain":
            question = chain(place, halves, hops=int(size), random=random)
        else:
            question = conjunction(place, halves, parts=int(size), random=random)
        if question.text not in seen:
            break
    seen.add(question.text)
    return question


def _solution(question: Question) -> dict[str, Any]:
    """What a script needs: look-ups as (subject, relation), None for "the value found before"."""
    plan = tuple(
        (None if question.chained and place else fact.subject, fact.relation)
        for place, fact in enumerate(question.facts)
    )
    return {
        "hops": len(question.facts),
        "plan": plan,
        "supporting_ids": tuple(fact.passage for fact in question.facts),
    }
