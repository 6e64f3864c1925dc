"""A run's end on the terminal: the curve, the figures before and after, where things are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentrecipes.cli.curve import curve
from agentrecipes.cli.output import table
from agentrecipes.cli.progress import duration

Rows = Sequence[Mapping[str, Any]]


def summary_text(summary: Mapping[str, Any]) -> str:
    """What `run` prints when it ends."""
    rows = summary.get("evaluations") or []
    blocks = [curve_of(rows), before_and_after(rows), _places(summary), _verdict(summary)]
    return "\n\n".join(block for block in blocks if block)


def curve_of(rows: Rows) -> str:
    """The sampled score over the iterations of the last stage that was evaluated twice."""
    for stage in reversed(list(dict.fromkeys(row["stage"] for row in rows))):
        chosen = [row for row in rows if row["stage"] == stage and row["mode"] == "sampled"]
        if not chosen:
            continue
        metric, split = chosen[0]["metric"], chosen[0]["split"]
        points = {
            row["iteration"]: row["value"]
            for row in chosen
            if (row["metric"], row["split"]) == (metric, split) and row["value"] is not None
        }
        if len(points) > 1:
            title = f"{metric}, sampled, {split}, stage {stage}"
            return curve(sorted(points.items()), title=title)
    return ""


def before_and_after(rows: Rows) -> str:
    """The first and the last value of every split, mode and metric."""
    found: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault((row["split"], row["mode"], row["metric"]), []).append(row)
    lines = [
        (*key, each[0]["value"] if len(each) > 1 else None, each[-1]["value"], each[-1]["tasks"])
        for key, each in found.items()
    ]
    return table(("split", "mode", "metric", "before", "after", "tasks"), lines) if lines else ""


def _places(summary: Mapping[str, Any]) -> str:
    artifacts = summary.get("artifacts") or {}
    places = {
        "model": artifacts.get("model"),
        "report": artifacts.get("report"),
        "tables": f"{summary['dir']}/tables",
        "MLflow": artifacts.get("mlflow_run_id"),
    }
    lines = [f"{name:7} {place}" for name, place in places.items() if place]
    reused = [f"reused  {each['stage']} of {each['run']}" for each in summary.get("reused") or ()]
    return "\n".join([*lines, *reused])


def _verdict(summary: Mapping[str, Any]) -> str:
    line = f"{summary['run']}: {summary['status']} in {duration(summary['wall_seconds'])}"
    lost = len(summary.get("lost") or ())
    if summary["status"] == "interrupted":
        line += f". Go on with: agentrecipes run --resume {summary['dir']}"
    return f"{line}\n{lost} records could not be written; see summary.json" if lost else line
