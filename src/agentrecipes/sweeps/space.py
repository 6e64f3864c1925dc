"""The space of a study: what each path may be, and when it is asked at all."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agentrecipes.sweeps.schema import Distribution

MOST_SITUATIONS = 32  # combinations of conditions in which an entry's ends are checked


@dataclass(frozen=True, slots=True)
class Entry:
    """One path: ``Entry("seed", "int", 1.0, 3.0, None, False, (), {})``."""

    path: str
    kind: Literal["float", "int", "choice"]
    low: float
    high: float
    step: float | None
    log: bool
    choices: tuple[Any, ...]
    when: Mapping[str, tuple[Any, ...]]

    @classmethod
    def of(cls, path: str, fields: Distribution) -> Entry:
        """The entry that a sweep file describes."""
        when = {
            key: tuple(value) if isinstance(value, list | tuple) else (value,)
            for key, value in fields.when.items()
        }
        low, high = fields.float_ or fields.int_ or (0.0, 0.0)
        kind: Literal["float", "int", "choice"]
        kind = "float" if fields.float_ else "int" if fields.int_ else "choice"
        return cls(path, kind, low, high, fields.step, fields.log, fields.choice or (), when)

    def ends(self) -> tuple[Any, ...]:
        """The values that must pass the recipe's check: both ends, or every choice."""
        if self.kind == "choice":
            return self.choices
        cast = int if self.kind == "int" else float
        return (cast(self.low), cast(self.high))

    def points(self) -> tuple[Any, ...] | None:
        """Every value, or None where there is no end to them."""
        if self.kind == "choice":
            return self.choices
        step = self.step or (1 if self.kind == "int" else None)
        if step is None or self.log:
            return None
        count = math.floor((self.high - self.low) / step + 1e-9) + 1
        values = [self.low + index * step for index in range(count)]
        return tuple(int(value) if self.kind == "int" else value for value in values)

    def is_asked(self, values: Mapping[str, Any]) -> bool:
        """Whether the conditions hold for what was chosen before."""
        return all(key in values and values[key] in wanted for key, wanted in self.when.items())

    def as_dict(self) -> dict[str, Any]:
        """What identifies the entry, as plain JSON data."""
        body: dict[str, Any] = {"choice": list(self.choices)}
        if self.kind != "choice":
            body = {self.kind: [self.low, self.high], "log": self.log, "step": self.step}
        when = {key: list(wanted) for key, wanted in self.when.items()}
        return {**body, **({"when": when} if when else {})}


@dataclass(frozen=True, slots=True)
class Space:
    """All entries, each after those that its conditions ask for."""

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Space:
        """The entries in an order in which conditions can be answered.

        Raises:
            ValueError: conditions lead in a circle; the message is one of their paths.
        """
        ordered: list[Entry] = []
        waiting = list(entries)
        while waiting:
            known = {entry.path for entry in ordered}
            ready = [entry for entry in waiting if set(entry.when) <= known]
            if not ready:
                raise ValueError(waiting[0].path)
            ordered += ready
            waiting = [entry for entry in waiting if entry not in ready]
        return cls(tuple(ordered))

    def __getitem__(self, path: str) -> Entry:
        return next(entry for entry in self.entries if entry.path == path)

    def assign(self, ask: Callable[[Entry], Any]) -> dict[str, Any]:
        """A value for each entry whose conditions hold, asked for one by one."""
        values: dict[str, Any] = {}
        for entry in self.entries:
            if entry.is_asked(values):
                values[entry.path] = ask(entry)
        return values

    def situations(self, entry: Entry) -> list[dict[str, Any]]:
        """Choices under which `entry` is asked, without its own value."""
        found: list[dict[str, Any]] = [{}]
        for key, wanted in entry.when.items():
            above = self.situations(self[key])
            found = [
                {**one, **outer, key: value}
                for one, outer, value in itertools.product(found, above, wanted)
            ]
        return found[:MOST_SITUATIONS]

    def grid(self) -> list[dict[str, Any]]:
        """Every point of the space once; an entry without end is not in it."""
        points: list[dict[str, Any]] = [{}]
        for entry in self.entries:
            points = [further for point in points for further in _with(entry, point)]
        return points

    def as_dict(self) -> dict[str, Any]:
        """Path → what identifies its entry."""
        return {entry.path: entry.as_dict() for entry in self.entries}


def _with(entry: Entry, point: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if not entry.is_asked(point):
        yield dict(point)
        return
    for value in entry.points() or ():
        yield {**point, entry.path: value}


def override(path: str, value: Any) -> str:
    """A value as the command line would set it: ``rollout.tasks=4``."""
    return f"{path}={json.dumps(value, ensure_ascii=False)}"


def overrides(values: Mapping[str, Any]) -> list[str]:
    """All values as overrides."""
    return [override(path, value) for path, value in values.items()]


def label(value: Any) -> Any:
    """A choice as Optuna can hold it: plain values as they are, all else as JSON text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
