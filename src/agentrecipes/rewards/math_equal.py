"""Equality of mathematical answers, for what can be compared exactly."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, ClassVar

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.rewards.protocol import Gives, View
from agentrecipes.rewards.quantities import boxed, items, number, plainest

SET = "\\{\\}"


@component("reward")
class MathEqual(Component):
    r"""1 if the answer equals any gold answer as a quantity, else 0; null without gold answers.

    Of an answer with ``\boxed{}`` the last box counts. Compared exactly are integers, decimals,
    thousands, powers of ten and fractions, in LaTeX or not (``\frac{1}{2}`` = ``0.50`` = ``2/4``);
    pairs and intervals item by item with their brackets, sets in any order. All else, such as
    roots, variables and sums, is equal only if it is written alike, blanks and ``\left``,
    ``\text{…}`` and the like apart: ``x + 1`` is not ``1 + x`` here. Nothing is evaluated.
    """

    tolerance: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0  # relative; 0: exactly equal

    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[frozenset[str]] = frozenset({"golden_answers"})
    gives: ClassVar[Gives] = "trajectory"

    def score(self, view: View) -> float | None:
        """A trajectory that never answered scores 0."""
        golds = [plainest(boxed(gold)) for gold in view.task.gold_answers]
        golds = [gold for gold in golds if gold]
        if not golds:
            return None
        if view.answer is None:
            return 0.0
        own = plainest(boxed(view.answer))
        return float(any(self._same(own, gold) for gold in golds))

    def _same(self, own: str, gold: str) -> bool:
        one, other = items(own), items(gold)
        if one is None or other is None or number(own) is not None:
            return self._equal(own, gold)
        if one[0] != other[0] or len(one[1]) != len(other[1]):
            return False
        mine, theirs = one[1], other[1]
        if one[0] == SET:
            mine, theirs = sorted(mine, key=_place), sorted(theirs, key=_place)
        return all(self._equal(a, b) for a, b in zip(mine, theirs, strict=True))

    def _equal(self, own: str, gold: str) -> bool:
        one, other = number(own), number(gold)
        if one is None or other is None:
            return own == gold
        return abs(one - other) <= Fraction(self.tolerance) * abs(other)


def _place(item: str) -> tuple[bool, Fraction, str]:
    """Numbers by size, then texts."""
    value = number(item)
    return value is None, value or Fraction(0), item if value is None else ""
