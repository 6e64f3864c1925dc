"""``report.html``: a run, or several, on one page that needs no network and no server."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agentrecipes.tracking.replacing import write
from agentrecipes.tracking.report import facts, figures
from agentrecipes.tracking.report.conversations import Payload, RunTrajectories, payload
from agentrecipes.tracking.report.pieces import Pieces
from agentrecipes.tracking.report.reading import RunData, finite, read_run
from agentrecipes.tracking.report.sample import MOST, Chosen, choose
from agentrecipes.tracking.report.seeds import Group, groups, stages

FOLDER = Path(__file__).parent
TILES = 6  # results at the top of the page
WARNINGS = 12  # lines at the top of the page


def write_report(runs: Sequence[Path], target: Path) -> Path:
    """Write one page about the runs in these folders to `target`, and return it.

    A run that is half empty, damaged or still going on gives a page with what there is.

    Raises:
        OSError: `target` cannot be written.
    """
    html = page([read_run(run) for run in runs])
    write(target, html.encode(errors="replace"))
    return target


def page(runs: Sequence[RunData]) -> str:
    """The page as text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
    )
    environment.filters["duration"] = duration
    return environment.get_template("page.html.jinja").render(_content(runs))


def _content(runs: Sequence[RunData]) -> dict[str, Any]:
    """What the template says; texts are escaped there."""
    from agentrecipes import __version__

    found = groups(runs)
    read = _trajectories(runs)
    results = facts.results(found)
    script = (FOLDER / "page.js").read_text(encoding="utf-8")
    content = {
        "title": " and ".join(dict.fromkeys(group.label for group in found)) or "No runs",
        "version": __version__,
        "runs": [_head(run) for run in runs],
        "several": len(found) > 1,
        "seeds": max((len(group.runs) for group in found), default=0),
        "groups": [group.label for group in found],
        "results": results,
        "tiles": _tiles(results, several=len(found) > 1),
        "scores": figures.scores(found),
        "kinds": facts.by_kind(found),
        "rewards": figures.reward_parts(found),
        "stops": figures.stops(found),
        "time": facts.time_spent(found),
        "activities": facts.COLOURS.items(),
        "logged": figures.logged(found),
        "recipes": [_recipe(group) for group in found],
        "differences": facts.differences(found) if len(found) > 1 else [],
        "style": (FOLDER / "page.css").read_text(encoding="utf-8"),
        "script": script,
        "script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        **read,
    }
    return {**content, "sections": _sections(content), "warnings": _warnings(runs)}


def _tiles(results: Sequence[facts.Result], *, several: bool) -> list[facts.Result]:
    """The results that the page opens with; of several recipes those on the test tasks."""
    plain = [each for each in results if "/" not in each.metric]
    on_test = [each for each in plain if each.split == "test"]
    return (on_test if several and on_test else plain)[:TILES]


SECTIONS = (
    ("scores", "Evaluation"),
    ("kinds", "Kinds of task"),
    ("rewards", "Rewards"),
    ("time", "Time"),
    ("trajectories", "Trajectories"),
    ("logged", "All figures"),
    ("recipe", "Recipe"),
)


def _sections(content: dict[str, Any]) -> list[tuple[str, str]]:
    always = ("trajectories", "recipe")
    return [(key, name) for key, name in SECTIONS if key in always or content[key]]


def _trajectories(runs: Sequence[RunData]) -> dict[str, Any]:
    """The browser's data, and a sentence about what it holds."""
    most = MOST // max(1, len(runs))
    chosen = [choose(run.folder, list(stages([run])), most=most, notes=run.notes) for run in runs]
    encoded = [
        RunTrajectories(
            run.name, each.trajectories, Pieces.read(run.folder / "model" / "tokenizer.json")
        )
        for run, each in zip(runs, chosen, strict=True)
    ]
    data = payload(encoded)
    return {"data": data.text, "count": data.count, "sample": sample_words(chosen, data)}


KINDS = {
    "last": "of the last evaluation",
    "first": "of the first evaluation",
    "other": "of other evaluations",
    "train": "of the latest training iterations",
}


def sample_words(chosen: Sequence[Chosen], data: Payload) -> str:
    """Which trajectories the page shows, in words."""
    count = data.count
    total = sum(each.total for each in chosen)
    if not total:
        return "No trajectory was recorded."
    if count >= total:
        said = f"All {total:,} trajectories."
    else:
        said = f"{count:,} of {total:,} trajectories"
        parts = {
            words: sum(each.counts.get(kind, 0) for each in chosen) for kind, words in KINDS.items()
        }
        if sum(parts.values()) == count:
            listed = ", ".join(f"{n:,} {words}" for words, n in parts.items() if n)
            said += f": {listed}"
        said += ". All of them are in the run's tables."
    if data.longest is not None:
        said += f" Passages of more than {data.longest:,} tokens are shown without their middle."
    return said


def _head(run: RunData) -> dict[str, str]:
    summary = run.summary
    wall = summary.get("wall_seconds")
    return {
        "name": run.name,
        "status": str(summary.get("status") or "unfinished"),
        "seed": str(summary.get("seed", "?")),
        "wall": duration(float(wall)) if wall and finite(wall) else "",
        "hash": str(summary.get("recipe_hash") or "")[:12],
    }


def _warnings(runs: Sequence[RunData]) -> list[str]:
    """What went wrong, run by run: tripwires, records that were lost, files that are damaged."""
    found = []
    for run in runs:
        head = f"{run.name}: " if len(runs) > 1 else ""
        tripwires = run.summary.get("tripwires") or ()
        found += [f"{head}{each.get('message', each)}" for each in tripwires]
        lost = run.summary.get("lost") or ()
        found += [f"{head}{len(lost)} records could not be written: {lost[0]}"] if lost else []
        found += [f"{head}could not be read: {note}" for note in dict.fromkeys(run.notes)]
    more = len(found) - WARNINGS
    return found if more <= 0 else [*found[:WARNINGS], f"and {more} more"]


def _recipe(group: Group) -> dict[str, Any]:
    """The recipe's values in chapters, those that somebody wrote apart from the defaults."""
    values = facts.recipe_values(group.runs[0])
    chapters = {"": values[:0], **{f"stages.{stage}.": values[:0] for stage in stages(group.runs)}}
    for value in values:
        start = next((each for each in reversed(chapters) if value.path.startswith(each)), "")
        chapters[start] = [*chapters[start], value.within(start)]
    return {
        "name": group.label,
        "told": bool(group.runs[0].origin),
        "chapters": [
            {
                "name": f"Stage {start.split('.')[1]}" if start else "Recipe",
                "written": [value for value in own if not value.is_default],
                "defaults": [value for value in own if value.is_default],
            }
            for start, own in chapters.items()
            if own
        ],
    }


def duration(seconds: float) -> str:
    """A time in words: ``1 h 02 min``, ``3 min 05 s``, ``12.5 s``."""
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s"
    return f"{minutes // 60} h {minutes % 60:02} min"
