"""What the benchmarks of learning share: a run of the command line, its figures, its curve."""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
RECIPE = "recipes/rag_r1.yaml"
KEPT = ("status", "recipe_hash", "seed", "wall_seconds", "stages", "evaluations", "tripwires")
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 44, 32

Points = list[tuple[int, list[float]]]
"""(iteration, the score of each run)."""


def run(words: Sequence[str], folder: Path | None = None) -> dict[str, Any]:
    """The summary of ``agentrecipes run``, with its command; in `folder`, or in none that stays.

    Without a folder, what the same sources made of the same words is not made again: a benchmark
    that was killed goes on where it was. Remove `.bench/runs` to begin anew.
    """
    known = folder is None and ROOT / ".bench" / "runs" / f"{_key(words)}.json"
    if known and known.exists():
        return dict(json.loads(known.read_text()))
    with tempfile.TemporaryDirectory() as temporary:
        place = folder or Path(temporary) / "run"
        program = [str(Path(sys.executable).parent / "agentrecipes"), "run", *words, "--json"]
        program += ["--run-dir", str(place), "--runs-dir", str(place.parent)]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
    command = " ".join(["agentrecipes", "run", *words, "--json"])
    if not done.stdout:
        raise SystemExit(f"{command} failed:\n{done.stderr[-2000:]}")
    summary = json.loads(done.stdout)
    made = {"command": command, **{key: summary[key] for key in KEPT}}
    if known and made["status"] == "finished":
        known.parent.mkdir(parents=True, exist_ok=True)
        known.write_text(json.dumps(made))
    return made


def _key(words: Sequence[str]) -> str:
    """Of a run: its words, and all that they are run with."""
    found = hashlib.sha256(json.dumps([sys.prefix, *words]).encode())
    for folder in ("src", "recipes", "bench/parts"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                found.update(path.read_bytes())
    return found.hexdigest()[:16]


def rows(made: dict[str, Any], split: str, mode: str) -> list[dict[str, Any]]:
    """The evaluations of the collecting stage on a split, in a mode."""
    wanted = ("reinforce", split, mode)
    return [r for r in made["evaluations"] if (r["stage"], r["split"], r["mode"]) == wanted]


def value(made: dict[str, Any], split: str, mode: str, *, last: bool = True) -> float:
    """The last exact match of a split and mode in the collecting stage, or the first."""
    found = rows(made, split, mode)
    return float(found[-1 if last else 0]["value"]) if found else math.nan


def curve(runs: Sequence[dict[str, Any]]) -> Points:
    """Sampled exact match on dev over the iterations, of all runs together."""
    points: dict[int, list[float]] = {}
    for each in runs:
        for row in rows(each, "dev", "sampled"):
            points.setdefault(row["iteration"], []).append(row["value"])
    return sorted(points.items())


def picture(points: Points, title: str, control: Points | None = None) -> str:
    """Curves as an SVG: each seed thin, their mean thick, a control in grey."""
    most = max(iteration for iteration, _ in points)

    def at(iteration: float, score: float) -> str:
        x = LEFT + (WIDTH - LEFT - 12) * iteration / most
        return f"{x:.1f},{HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 14) * score:.1f}"

    def line(values: Sequence[tuple[int, float]], colour: str, width: float) -> str:
        path = " ".join(at(i, score) for i, score in values)
        return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="{width:g}"/>'

    def mean(of: Points) -> list[tuple[int, float]]:
        return [(i, sum(scores) / len(scores)) for i, scores in of]

    marks = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(0, tick).split(",")
        marks.append(f'<path d="M{x} {y}H{WIDTH - 12}" stroke="#8884" fill="none"/>')
        marks.append(
            f'<text x="{LEFT - 6}" y="{float(y) + 4:.0f}" text-anchor="end">{tick:g}</text>'
        )
    for iteration, _ in points:
        x = at(iteration, 0).split(",")[0]
        marks.append(f'<text x="{x}" y="{HEIGHT - 12}" text-anchor="middle">{iteration}</text>')
    for n in range(max(len(scores) for _, scores in points)):
        own = [(i, scores[n]) for i, scores in points if len(scores) > n]
        marks.append(line(own, "#3b82f680", 1.2))
    marks.append(line(mean(points), "#2563eb", 3))
    if control:
        marks.append(line(mean(control), "#888888", 2))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#666"><title>{title}</title>'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>{"".join(marks)}'
        f'<text x="{WIDTH - 16}" y="{HEIGHT - BOTTOM - 8}" text-anchor="end">RL iteration</text>'
        "</svg>\n"
    )
