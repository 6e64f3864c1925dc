"""Which trajectories a report shows, and their turns: not all, and the page says which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrecipes.tracking.report.reading import parts
from agentrecipes.tracking.report.seeds import mode_rank

MOST = 1000  # trajectories on one page
LAST, FIRST = 0.5, 0.1  # shares of them for the last and the first evaluation, if there is training

PLACE = ["stage", "iteration", "split", "mode"]
KEY = [*PLACE, "group_id", "attempt", "role"]
TRAJECTORY = [
    *(*KEY, "task", "stop", "total", "parts", "advantage_mean", "answer", "gold"),
    *("policy_version", "seconds"),
]
TURN = [
    *(*KEY, "turn", "prompt_ids", "fork", "action_ids", "logp_rollout", "observation_ids"),
    *("action_text", "observation_text", "valid", "turn_total", "engine_seconds", "tool_seconds"),
    "advantages",  # by action token, where a run wrote them
]

Place = tuple[str, int, str, str]
"""stage, iteration, split, mode."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """Some trajectories of a run, and how many there were."""

    trajectories: Sequence[Mapping[str, Any]]  # each with its "turns", in order
    total: int
    counts: Mapping[str, int]  # kind of place (see `kinds`) → how many were chosen


def choose(folder: Path, stages: Sequence[str], *, most: int, notes: list[str]) -> Chosen:
    """At most `most` trajectories: of the last and first evaluation, then the latest training."""
    counts: Counter[Place] = Counter()
    for part in parts(folder, "trajectories", PLACE, notes=notes):
        if len(part.column_names) == len(PLACE):
            counts.update(zip(*(part[name].to_pylist() for name in PLACE), strict=True))
    counts = Counter({place: n for place, n in counts.items() if None not in place})
    order = {stage: index for index, stage in enumerate(stages)}
    places = sorted(
        counts, key=lambda p: (-order.get(p[0], 0), -p[1], SPLITS.get(p[2], 1), mode_rank(p[3]))
    )
    taken = _taken({place: counts[place] for place in places}, most)
    found = _trajectories(folder, taken, notes)
    named = kinds(places)
    chosen: Counter[str] = Counter()
    for place, rows in found.items():
        chosen[named[place]] += len(rows)
    return Chosen([row for place in places for row in found.get(place, ())], counts.total(), chosen)


SPLITS = {"test": 0, "dev": 1, "train": 2}  # in which order those of one iteration are listed


def kinds(places: Iterable[Place]) -> dict[Place, str]:
    """What each place is: "train", or "last", "first" or "other" evaluation; latest place first."""
    times = list(dict.fromkeys(p[:2] for p in places if p[2] != "train"))
    names = {time: "other" for time in times}
    names |= {time: "first" for time in times[-1:]} | {time: "last" for time in times[:1]}
    return {p: "train" if p[2] == "train" else names[p[:2]] for p in places}


def _taken(counts: Mapping[Place, int], most: int) -> dict[Place, int]:
    """How many to take of each place; `counts` has the latest first."""
    kind = kinds(counts)
    by = {
        name: [p for p in counts if kind[p] == name] for name in ("last", "first", "train", "other")
    }
    taken: Counter[Place] = Counter()
    shared = bool(by["train"])
    for places, limit, spread in (
        (by["last"], int(most * LAST) if shared else most, True),
        (by["first"], int(most * FIRST) if shared else most, True),
        (by["train"], most, False),
        (by["last"], most, True),
        (by["first"], most, True),
        (by["other"], most, False),
    ):
        room = min(limit, most - taken.total())
        for index, place in enumerate(places):
            even = -(-room // (len(places) - index)) if spread else room
            extra = min(even, counts[place] - taken[place])
            taken[place] += extra
            room -= extra
    return {place: n for place, n in taken.items() if n > 0}


def _trajectories(
    folder: Path, taken: Mapping[Place, int], notes: list[str]
) -> dict[Place, list[dict[str, Any]]]:
    """The first rows of each place, in the order they were written, so that groups stay whole."""
    found: dict[Place, list[dict[str, Any]]] = {}
    keyed: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in _rows(folder, "trajectories", taken, notes=notes):
        own = found.setdefault(_place(row), [])
        if len(own) < taken[_place(row)]:
            row |= {"parts": dict(row.get("parts") or ()), "turns": []}
            own.append(row)
            keyed[_key(row)] = row
    for row in _rows(folder, "turns", taken, notes=notes):
        if _key(row) in keyed:
            keyed[_key(row)]["turns"].append(row)
    for row in keyed.values():
        row["turns"].sort(key=lambda turn: turn.get("turn") or 0)
    return found


def _rows(
    folder: Path, table: str, taken: Mapping[Place, int], *, notes: list[str]
) -> Iterable[dict[str, Any]]:
    """The table's rows that stand at one of the places."""
    import pyarrow.dataset as ds

    if not taken:
        return
    where = ds.scalar(True)
    for index, name in enumerate(PLACE):
        where &= ds.field(name).isin(list({place[index] for place in taken}))
    columns = TURN if table == "turns" else TRAJECTORY
    for part in parts(folder, table, columns, where=where, notes=notes):
        if set(KEY) <= set(part.column_names):
            yield from (row for row in part.to_pylist() if _place(row) in taken)


def _place(row: Mapping[str, Any]) -> Place:
    return (row["stage"], row["iteration"], row["split"], row["mode"])


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEY)
