"""What a resumed run tells its tracker of the time before: a kill may have cut it off mid-sentence.

The tables are the record. A tracker takes each metric's step once, so only what it lacks is stored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentrecipes.tracking.protocol import Tracker
from agentrecipes.tracking.tables import MetricRow
from agentrecipes.training.recorder import EVERY, mean_of


def retell_stage(
    rows: Sequence[MetricRow], tracker: Tracker, *, offset: int, reads: bool
) -> list[Mapping[str, float]]:
    """Tell a stage's metrics again; return the steps since the last mean, if the stage reads data.

    `rows` come by step; `offset` is the number of steps and iterations of the stages before.
    """
    steps: dict[int, dict[str, float]] = {}
    for row in rows:
        steps.setdefault(row.step, {})[row.name] = row.value
    if not reads:
        for step, values in steps.items():
            tracker.metrics(values, offset + step)
        return []
    recent: list[Mapping[str, float]] = []
    for step, values in steps.items():
        recent.append(values)
        if step % EVERY == 0:
            tracker.metrics(mean_of(recent), offset + step)
            recent = []
    return recent


def retell_evaluations(
    told: Sequence[Mapping[str, Any]], tracker: Tracker, *, offsets: Mapping[str, int]
) -> None:
    """Tell evaluations again, rows with the keys of the summary; `offsets` are by stage."""
    for row in told:
        if row["value"] is not None:
            name = f"eval/{row['split']}/{row['mode']}/{row['metric']}"
            tracker.metrics({name: row["value"]}, offsets[row["stage"]] + row["iteration"])
