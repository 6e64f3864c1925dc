"""A generated world of facts, its questions, and every word of its language.

Five entity types and fourteen relations; every entity has one value per relation. One fact is one
passage of six words, ``X 's author is Y .``, titled X. A world has two halves, A and B, that share
no entity: what is learned about the names of one is worth nothing in the other. Entity names are
one word each and tell nothing about the type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations, product
from random import Random
from typing import TypeVar

from agentrecipes.numerics.streams import derive
from agentrecipes.records import Passage

SIZES = {"person": 60, "city": 30, "company": 25, "work": 40, "country": 12}  # entities of a half
RELATIONS = {
    "work": {"author": "person", "publisher": "company", "setting": "city"},
    "person": {"birthplace": "city", "employer": "company", "spouse": "person", "mentor": "person"},
    "company": {"founder": "person", "headquarters": "city", "rival": "company"},
    "city": {"country": "country", "mayor": "person"},
    "country": {"capital": "city", "president": "person"},
}  # type of the subject → relation → type of the value
HALVES = ("A", "B")
SYLLABLES = (
    ("ka", "mi", "to", "re", "sul", "bor", "ven", "dal"),
    ("ra", "ne", "lo", "mi", "ti", "do", "va"),
    ("x", "n", "l", "s", "k", "d", "th"),
)
NAMES = tuple("".join(parts) for parts in product(*SYLLABLES))  # 8 · 7 · 7 = 392
# What stands before each value of an answer of so many parts, latest value first. No word means two
# slots: a tiny model copies by landmarks, and of two slots with one word it often learned only one.
JOINTS = (("",), ("", " and "), ("", " with ", " plus "))
MARKS = ("", "\n2.", "\n3.")  # what stands before each part of a question

T = TypeVar("T")

_TAGS = (
    """<think> _</think> _<search> _</search> _<answer> _</answer> |<information> _</information>"""
)
_WORDS = "question _: _what _is _'s _? _. _and _with _plus _next _done"
_HINTS = """|My _action _invalid _I _write _search _query _or _answer _no _was _closed _the _empty
_tags _are _nested _a _tag _that _never _opened _only _environment _writes _information _too _many
_queries"""
_CODE = """name arguments expression calculator need has no yes call none next done what are is and
: ; . , ( ) [ ] { } = ' " + - *"""
_CODE_TAGS = "think answer tool_call tool_response"


@dataclass(frozen=True, slots=True)
class Fact:
    """``Fact("karax", "author", "minel", "0-17")``: minel is the author of karax (passage 0-17)."""

    subject: str
    relation: str
    value: str
    passage: str


@dataclass(frozen=True, slots=True)
class World:
    """Entities of each half by type, and every fact by (subject, relation)."""

    halves: Mapping[str, Mapping[str, tuple[str, ...]]]
    facts: Mapping[tuple[str, str], Fact]
    passages: tuple[Passage, ...]
    types: Mapping[str, str]  # entity → type


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its facts, in the order in which they must be found."""

    text: str
    facts: tuple[Fact, ...]
    chained: bool  # each fact's subject is the value before it

    @property
    def answers(self) -> tuple[str, ...]:
        """Every right answer, canonical first: the last value, or all values, latest first."""
        values = [fact.value for fact in reversed(self.facts)]
        if self.chained:
            return (values[0],)
        return tuple(join(order) for order in permutations(values))


@lru_cache(maxsize=16)
def world(seed: int) -> World:
    """The world of a seed: 334 entities and 1,038 passages, the same in every process."""
    random = Random(derive("world", seed))
    names = shuffled(NAMES, random)
    halves: dict[str, dict[str, tuple[str, ...]]] = {}
    for half in HALVES:
        halves[half] = {}
        for kind, size in SIZES.items():
            halves[half][kind], names = tuple(names[:size]), names[size:]
    facts = [fact for half in HALVES for fact in _facts(halves[half], random)]
    facts = shuffled(facts, random)
    numbered = {
        (subject, relation): Fact(subject, relation, value, f"{seed}-{number}")
        for number, (subject, relation, value) in enumerate(facts)
    }
    passages = tuple(
        Passage(fact.passage, fact.subject, sentence(fact)) for fact in numbered.values()
    )
    types = {name: kind for half in halves.values() for kind, ns in half.items() for name in ns}
    return World(halves, numbered, passages, types)


def _facts(half: Mapping[str, tuple[str, ...]], random: Random) -> list[tuple[str, str, str]]:
    return [
        (subject, relation, choice([name for name in half[target] if name != subject], random))
        for kind, relations in RELATIONS.items()
        for subject in half[kind]
        for relation, target in relations.items()
    ]


def sentence(fact: Fact) -> str:
    """The text of a fact's passage."""
    return f"{fact.subject} 's {fact.relation} is {fact.value} ."


def choice(options: Sequence[T], random: Random) -> T:
    """One of `options`; unlike ``Random.choice`` the same in every version of Python."""
    return options[int(random.random() * len(options))]


def shuffled(options: Sequence[T], random: Random) -> list[T]:
    """A permutation of `options`, the same in every version of Python too."""
    keys = [random.random() for _ in options]
    return [options[index] for index in sorted(range(len(options)), key=keys.__getitem__)]


def join(values: Sequence[str]) -> str:
    """The form of an answer, latest value first: ``A``, ``B and A``, ``C with B plus A``."""
    joints = JOINTS[len(values) - 1]
    return "".join(joint + value for joint, value in zip(joints, values, strict=True))


def chain(world: World, halves: Sequence[str], *, hops: int, random: Random) -> Question:
    """``question : what is X 's author 's city ?`` with no relation or entity twice."""
    subjects = [name for half in halves for names in world.halves[half].values() for name in names]
    while True:
        facts: list[Fact] = []
        subject = choice(subjects, random)
        for _ in range(hops):
            relation = choice(list(RELATIONS[world.types[subject]]), random)
            facts.append(world.facts[subject, relation])
            subject = facts[-1].value
        entities = {facts[0].subject} | {fact.value for fact in facts}
        if len(entities) == hops + 1 and len({fact.relation for fact in facts}) == hops:
            path = "".join(f" 's {fact.relation}" for fact in facts)
            return Question(f"question : what is {facts[0].subject}{path} ?", tuple(facts), True)


def conjunction(world: World, halves: Sequence[str], *, parts: int, random: Random) -> Question:
    """``question : what is X 's author⏎2. Y 's city ?``; each later part has its own landmark."""
    subjects = [name for half in halves for names in world.halves[half].values() for name in names]
    while True:
        facts: list[Fact] = []
        for _ in range(parts):
            subject = choice(subjects, random)
            relation = choice(list(RELATIONS[world.types[subject]]), random)
            facts.append(world.facts[subject, relation])
        entities = {fact.subject for fact in facts} | {fact.value for fact in facts}
        if len(entities) == 2 * parts and len({fact.relation for fact in facts}) == parts:
            path = "".join(
                f"{mark} {fact.subject} 's {fact.relation}"
                for mark, fact in zip(MARKS, facts, strict=False)
            )
            return Question(f"question : what is{path} ?", tuple(facts), False)


def vocabulary() -> list[str]:
    """Every piece ``[ \\n]?\\S+`` of a well-played episode and of hints, in a fixed order.

    A word carries the blank or newline before it: `` author``, ``\\n2.``, ``<think>``. A lone
    newline ends an observation.
    """
    marked = f"{_TAGS} {_WORDS} |2. |3. {_HINTS}".split()
    pieces = [piece.replace("_", " ").replace("|", "\n") for piece in marked]
    relations = [f" {relation}" for group in RELATIONS.values() for relation in group]
    return list(dict.fromkeys(["\n", *pieces, *relations, *(f" {name}" for name in NAMES)]))


def code_vocabulary() -> list[str]:
    """Pieces of function calls over the world's names and relations: words, signs and tags.

    Each is there alone, after a blank and after a newline, but a name or relation not after one.
    """
    spoken = [relation for group in RELATIONS.values() for relation in group]
    signs = [*_CODE.split(), *(f"<{t}>" for t in _CODE_TAGS.split())]
    signs += [f"</{tag}>" for tag in _CODE_TAGS.split()]
    pieces = [lead + sign for sign in signs for lead in ("", " ", "\n")]
    pieces += [lead + word for word in (*spoken, *NAMES) for lead in ("", " ")]
    return list(dict.fromkeys(["\n", " ", *pieces]))
