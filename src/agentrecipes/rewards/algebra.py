"""What rewards that hold rewards are made of: checked values, derived ranges, sums by turn.

Ranges are derived by the operations that compute the values, in the same order, so that rounding
never puts a value outside of its range.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import model_validator

from agentrecipes.components import Fields, PartOf
from agentrecipes.recipe.schema import beside
from agentrecipes.rewards.protocol import Gives, Reward, View

Held = Annotated[Any, PartOf("reward")]
Value = float | list[float]
Range = tuple[float, float]


class WeightedReward(Fields):
    """A reward inside another, with its weight: ``{name: token_f1, weight: 0.5}``."""

    part: Held
    weight: float = 1.0

    @model_validator(mode="before")
    @classmethod
    def _split(cls, data: Any) -> Any:
        return beside(data, {"weight"})

    def dump(self) -> dict[str, Any]:
        """The entry as YAML would write it."""
        return {**self.part.dump(), "weight": self.weight}


def computed(part: Reward, view: View, label: str) -> tuple[Value | None, str]:
    """The part's value, or None and the reason: null, NaN, out of its range, not one per turn.

    Of a part that holds others, the reason is that of the first one that has no value.
    """
    value = part.score(view)
    if value is None:
        return None, _reason(part, view, label)
    listed = list(value) if isinstance(value, list | tuple) else [value]
    if any(one is None for one in listed):
        return None, f"{label} could not be computed on a turn"
    numbers = [float(one) for one in listed]
    if isinstance(value, list | tuple) and len(numbers) != len(view.actions):
        return None, f"{label} gave {len(numbers)} values for {len(view.actions)} turns"
    low, high = part.range
    for number in numbers:
        if not low <= number <= high:  # NaN is in no range
            return None, f"{label} gave {number!r}, outside its range [{low:g}, {high:g}]"
    return (numbers, "") if isinstance(value, list | tuple) else (numbers[0], "")


def _reason(part: Reward, view: View, label: str) -> str:
    for inner in getattr(part, "held", ()):
        value, reason = computed(inner, view, inner.part_name)
        if value is None:
            return f"{label} could not be computed: {reason}"
    return f"{label} could not be computed"


def values(parts: Iterable[Any], view: View) -> list[Value] | None:
    """The values of held parts; None where one has none."""
    found = [computed(part, view, part.part_name)[0] for part in parts]
    return None if None in found else [value for value in found if value is not None]


def whole(value: Value) -> float:
    """The value of the trajectory: the sum where there is one value per turn."""
    return math.fsum(value) if isinstance(value, list) else value


def gives_of(parts: Iterable[Reward]) -> Gives:
    """What a combination gives that keeps turns apart: one per turn if one of its parts does."""
    return "turn" if any(_by_turn(part) for part in parts) else "trajectory"


def _by_turn(part: Reward) -> bool:
    return getattr(part, "gives", "trajectory") == "turn"


def whole_range(part: Reward) -> Range:
    """The range of `whole`: without bounds where turns, however many, can add up."""
    low, high = part.range
    if _by_turn(part):
        return (-math.inf if low < 0 else 0.0), (math.inf if high > 0 else 0.0)
    return low, high


def scaled(value: Value, factor: float) -> Value:
    """`value` times `factor`, turn by turn."""
    return [factor * one for one in value] if isinstance(value, list) else factor * value


def times(one: Range, other: Range) -> Range:
    """The range of products. Nothing of something without bounds is nothing."""
    ends = [a * b if a and b else 0.0 for a in one for b in other]
    return min(ends), max(ends)


def hull(ranges: Iterable[Range]) -> Range:
    """The smallest range that holds all of `ranges`."""
    lows, highs = zip(*ranges, strict=True)
    return min(lows), max(highs)


def added(found: Sequence[Value]) -> Value:
    """The sum: turn by turn, with single numbers on the last turn; a number if there is no turn."""
    lists = [value for value in found if isinstance(value, list)]
    numbers = [value for value in found if not isinstance(value, list)]
    if not lists or not lists[0]:
        return math.fsum(numbers)
    columns = list(zip(*lists, strict=True))
    return [*map(math.fsum, columns[:-1]), math.fsum([*columns[-1], *numbers])]


def added_range(terms: Sequence[tuple[Reward, float]]) -> Range:
    """The range of `added` values of parts and factors; of a turn, where a part gives turns."""
    listed = [times(part.range, (f, f)) for part, f in terms if _by_turn(part)]
    single = [times(part.range, (f, f)) for part, f in terms if not _by_turn(part)]
    numbers = _sum(single)
    return hull([_sum(listed), _sum([*listed, *single]), numbers]) if listed else numbers


def _sum(ranges: Sequence[Range]) -> Range:
    return math.fsum(low for low, _ in ranges), math.fsum(high for _, high in ranges)
