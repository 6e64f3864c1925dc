"""Plays a task from its plan, perfectly or with chosen faults, and knows only what it has read.

The plan (``Task.data["plan"]``) says what to look up, as (subject, relation) pairs; a subject of
None is the value found before. Values come from the observations alone, so that a perfect script
scores what searching can give, never more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from agentrecipes.datasets.knowledge import JOINTS, join
from agentrecipes.records import Action, Call, Task

FACT = re.compile(r"(\S+) 's (\S+) is (\S+) \.")
LABEL = re.compile(r"\n(\d{1,2})\.")

Facts = Sequence[tuple[str, str, str]]  # (subject, relation, value)


@dataclass(frozen=True, slots=True)
class Faults:
    """How often a script errs, as probabilities; none by default."""

    stop_chain: float = 0.0  # stops early after the first turn of a chain; half as often later
    stop_conjunction: float = 0.0  # the same for conjunctions
    lazy_query: float = 0.0  # names the subject alone
    wrong_passage: float = 0.0  # reads another passage than the right one
    wrong_relation: float = 0.0  # asks for another relation of the question
    one_query: float = 0.0  # asks only the first of several pending queries
    backtrack: float = 0.0  # no fault: takes back a step that did not find what was asked for
    summary: float = 0.0  # no fault either: sums up what it has found before it asks again


@dataclass(frozen=True, slots=True)
class Asked:
    """A look-up on its way: part `place` of the plan, and what the query was about."""

    place: int
    subject: str
    relation: str


class Script:
    """An agent: takes the last observation, gives the next action."""

    def __init__(self, task: Task, queries: int, *, faults: Faults, random: Random) -> None:
        self._plan: Sequence[tuple[str | None, str]] = task.data["plan"]
        self._chained = any(subject is None for subject, _ in self._plan) or len(self._plan) == 1
        self._queries = queries  # most in one turn
        self._faults = faults
        self._random = random
        self._found: dict[int, str] = {}  # part of the plan → value; the order is that of finding
        self._told: dict[int, str] = {}  # part of the plan → the fact that says it
        self._asked: list[Asked] = []
        self._turns = 0  # turns of searching that were read

    def __call__(self, observation: str | None) -> Action:
        if (
            self._asked
            and self._missed(observation or "")
            and self._happens(self._faults.backtrack)
        ):
            self._asked = []
            return Action("again", (Call("backtrack", {}),))
        if self._asked:
            self._read(observation or "")
        if len(self._found) == len(self._plan) or (self._asked and self._stops_early()):
            return Action("done", answer=self._answer())
        if self._asked and self._happens(self._faults.summary):
            self._asked = []
            return Action("next", (Call("summary", {"text": " ".join(self._told.values())}),))
        return self._ask()

    def _missed(self, observation: str) -> bool:
        """Whether an answer to any of the questions on their way is not in the observation."""
        return any(
            [asked.subject, asked.relation] not in [key for *key, _ in facts]
            or asked.relation != self._plan[asked.place][1]
            for asked, facts in self._facts(observation)
        )

    def _stops_early(self) -> bool:
        faults = self._faults
        chance = faults.stop_chain if self._chained else faults.stop_conjunction
        return self._happens(chance if self._turns == 1 else chance / 2)

    def _answer(self) -> str:
        values = [self._found[place] for place in sorted(self._found, reverse=True)]
        if self._chained:
            return values[0]
        return join(values)

    def _ask(self) -> Action:
        ready = [place for place in range(len(self._plan)) if self._is_ready(place)]
        ready = ready[: self._queries]
        if len(ready) > 1 and self._happens(self._faults.one_query):
            ready = ready[:1]
        self._asked = [self._look_up(place) for place in ready]
        calls = tuple(self._call(asked, number) for number, asked in enumerate(self._asked, 1))
        return Action(" ".join(["next", *(asked.relation for asked in self._asked)]), calls)

    def _is_ready(self, place: int) -> bool:
        if place in self._found:
            return False
        return self._plan[place][0] is not None or place - 1 in self._found

    def _look_up(self, place: int) -> Asked:
        subject, relation = self._plan[place]
        others = [other for _, other in self._plan if other != relation]
        if others and self._happens(self._faults.wrong_relation):
            relation = self._one_of(others)
        return Asked(place, self._found[place - 1] if subject is None else subject, relation)

    def _call(self, asked: Asked, number: int) -> Call:
        lazy = self._happens(self._faults.lazy_query)
        query = asked.subject if lazy else f"{asked.subject} 's {asked.relation}"
        label = 1 if self._chained else asked.place + 1
        return Call("search", {"query": query, **({"slot": label} if label != number else {})})

    def _read(self, observation: str) -> None:
        for asked, facts in self._facts(observation):
            value = self._value(asked, facts)
            self._found[asked.place] = value
            self._told[asked.place] = f"{asked.subject} 's {asked.relation} is {value} ."
        self._turns += 1

    def _facts(self, observation: str) -> Iterator[tuple[Asked, Facts]]:
        """What the observation says where each question on its way was answered."""
        pieces = LABEL.split(observation)
        sections = {1: pieces[0], **dict(zip(map(int, pieces[1::2]), pieces[2::2], strict=True))}
        for asked in self._asked:
            label = 1 if self._chained else asked.place + 1
            yield asked, FACT.findall(sections.get(label, observation))

    def _value(self, asked: Asked, facts: Facts) -> str:
        right = [value for *key, value in facts if key == [asked.subject, asked.relation]]
        others = [value for *key, value in facts if key != [asked.subject, asked.relation]]
        if right and not (others and self._happens(self._faults.wrong_passage)):
            return right[0]
        return self._one_of(others) if others else asked.subject

    def _happens(self, chance: float) -> bool:
        return chance > 0.0 and self._random.random() < chance

    def _one_of(self, options: Sequence[str]) -> str:
        return options[int(self._random.random() * len(options))]


def reader(titles: Sequence[str], answer: str, queries: int) -> Callable[[str | None], Action]:
    """Plays a question without a plan: searches for the supporting titles, then gives `answer`."""
    chunks = [titles[start : start + queries] for start in range(0, len(titles), queries)]
    left = iter(chunks)

    def play(observation: str | None) -> Action:
        chunk = next(left, None)
        if chunk is None:
            return Action("done", answer=answer)
        return Action("next", tuple(Call("search", {"query": title}) for title in chunk))

    return play


def guesser(task: Task, symbols: frozenset[str], random: Random) -> Callable[[str | None], Action]:
    """Searches and answers at random with words that it was shown; never looks at gold answers."""
    seen = task.question.split()
    relations = [after for word, after in pairwise(seen) if word == "'s"]

    def pick(options: Sequence[str]) -> str:
        return options[int(random.random() * len(options))]

    def play(observation: str | None) -> Action:
        shown = [word for word in (observation or "").split() if "<" not in word]
        seen.extend(shown)
        words = [word for word in seen if word in symbols] or [w for w in seen if w[0].isalnum()]
        words = words or ["nothing"]
        if random.random() < 0.5:
            count = 1 + int(random.random() * len(JOINTS))
            return Action("done", answer=join([pick(words) for _ in range(count)]))
        query = (
            f"{pick(words)} 's {pick(relations)}" if relations else f"{pick(words)} {pick(words)}"
        )
        return Action("next", (Call("search", {"query": query}),))

    return play
