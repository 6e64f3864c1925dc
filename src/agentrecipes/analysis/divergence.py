"""Where two runs part: the first token of their training rows that is not the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.analysis.stored import read_table

if TYPE_CHECKING:
    import pyarrow as pa

ORDER = ("group_id", "attempt", "turn", "role")  # within one stage and iteration
PARTS = ("prompt", "action", "observation")  # of a turn, in the order in which they are seen
COLUMNS = (
    *("stage", "iteration", "task", *ORDER),
    *(f"{part}_ids" for part in PARTS),
    "action_text",
)


def first_divergence(a: Path, b: Path, stages: Sequence[str]) -> dict[str, Any] | None:
    """The first divergent token in the order stage, iteration, group, attempt, turn; or None.

    ``token`` counts from 0 within the part of the turn that ``part`` names; ``a`` and ``b`` are
    the token ids, null where that run has none: its turn is shorter, or was never played. Stages
    come in the order of `stages`, groups by their id.

    Raises:
        AgentRecipesError: a table is damaged.
    """
    one, other = (read_table(each, "turns", COLUMNS, split="train") for each in (a, b))
    for stage, iteration in _places((one, other), stages):
        own, others = (_at(table, stage, iteration) for table in (one, other))
        if not own.equals(others):
            found = _in_iteration(own.to_pylist(), others.to_pylist())
            if found is not None:
                return {"stage": stage, "iteration": iteration, **found}
    return None


def _places(tables: Sequence[pa.Table], stages: Sequence[str]) -> list[tuple[str, int]]:
    """Every (stage, iteration) that any table has, in the order of training."""
    found: set[tuple[str, int]] = set()
    for table in tables:
        pairs = table.group_by(["stage", "iteration"]).aggregate([]).to_pylist()
        found |= {(str(pair["stage"]), int(pair["iteration"])) for pair in pairs}
    rank = {stage: place for place, stage in enumerate(stages)}
    return sorted(found, key=lambda pair: (rank.get(pair[0], len(rank)), *pair))


def _at(table: pa.Table, stage: str, iteration: int) -> pa.Table:
    import pyarrow.compute as pc

    here = pc.and_(pc.equal(table["stage"], stage), pc.equal(table["iteration"], iteration))
    return table.filter(here).sort_by([(name, "ascending") for name in ORDER]).combine_chunks()


def _in_iteration(
    a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]
) -> dict[str, Any] | None:
    for one, other in _aligned(a, b):
        found = _in_turn(one or {}, other or {})
        if found is not None:
            known = one or other or {}
            place = {name: known[name] for name in ("task", "group_id", "attempt", "turn")}
            texts = [None if row is None else row["action_text"] for row in (one, other)]
            return {
                "task": place["task"],
                "group": place["group_id"],
                "attempt": place["attempt"],
                "turn": place["turn"],
                **found,
                "a_text": texts[0],
                "b_text": texts[1],
            }
    return None


def _aligned(
    a: Sequence[Mapping[str, Any]], b: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]]:
    """Turns of the same place side by side; None where a run has no such turn."""
    own, others = ({tuple(row[name] for name in ORDER): row for row in rows} for rows in (a, b))
    for key in sorted({*own, *others}):
        yield own.get(key), others.get(key)


def _in_turn(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any] | None:
    for part in PARTS:
        a, b = (list(row.get(f"{part}_ids") or ()) for row in (one, other))
        if a != b:
            same = (place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y)
            token = next(same, min(len(a), len(b)))
            return {"part": part, "token": token, "a": _nth(a, token), "b": _nth(b, token)}
    return None


def _nth(ids: Sequence[int], place: int) -> int | None:
    return ids[place] if place < len(ids) else None
