"""Numbers that remember how they came about, so that a loop over tokens has a gradient too."""

from __future__ import annotations

import math
from itertools import count

_serial = count()


class Number:
    """A float with its slopes by the numbers that it was made of."""

    __slots__ = ("parents", "serial", "slope", "value")

    def __init__(self, value: float, *parents: tuple[Number, float]) -> None:
        self.value, self.parents = value, parents
        self.serial, self.slope = next(_serial), 0.0

    def __float__(self) -> float:
        return self.value

    def __add__(self, other: Number | float) -> Number:
        if isinstance(other, Number):
            return Number(self.value + other.value, (self, 1.0), (other, 1.0))
        return Number(self.value + other, (self, 1.0))

    def __mul__(self, other: Number | float) -> Number:
        if isinstance(other, Number):
            return Number(self.value * other.value, (self, other.value), (other, self.value))
        return Number(self.value * other, (self, float(other)))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Number:
        return self * -1.0

    def __sub__(self, other: Number | float) -> Number:
        return self + -other

    def __rsub__(self, other: float) -> Number:
        return -self + other

    def __truediv__(self, other: float) -> Number:
        return self * (1.0 / other)

    def __rtruediv__(self, other: float) -> Number:
        return Number(other / self.value, (self, -other / self.value**2))

    def __gt__(self, other: Number | float) -> bool:
        return self.value > float(other)

    def __lt__(self, other: Number | float) -> bool:
        return self.value < float(other)


def exp(x: Number | float) -> Number | float:
    if not isinstance(x, Number):
        return math.exp(x)
    value = math.exp(x.value)
    return Number(value, (x, value))


def log(x: Number) -> Number:
    return Number(math.log(x.value), (x, 1.0 / x.value))


def fill_slopes(total: Number | float) -> None:
    """Leave d total / d x in the slope of every number that `total` was made of."""
    if not isinstance(total, Number):
        return
    found, waiting = {total}, [total]
    while waiting:
        for parent, _ in waiting.pop().parents:
            if parent not in found:
                found.add(parent)
                waiting.append(parent)
    total.slope = 1.0
    for number in sorted(found, key=lambda each: -each.serial):
        for parent, slope in number.parents:
            parent.slope += number.slope * slope
