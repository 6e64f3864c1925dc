"""Re-makes the figures of docs/results/rag_r1.md: seeds, control, one query a turn, GRPO.

    python bench/default_recipe.py                 # everything, one run at a time
    python bench/default_recipe.py --workers 2 --only seeds
    python bench/default_recipe.py --quick         # seed 7 alone

Each run is the command line's own; its summary is kept in docs/results/rag_r1.json beside the exact
command, and the curve over seeds is drawn to docs/results/rag_r1.svg.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
RECIPE = "recipes/rag_r1.yaml"
SEEDS = (7, 0, 1, 2, 3, 4)
GROUPS: dict[str, tuple[Sequence[int], list[str]]] = {
    "seeds": (SEEDS, []),
    "control": ((7, 0), ["rewards=[constant]"]),
    "one_query": ((7, 0, 1), ["environment.protocol.queries_per_turn=1"]),
    "grpo": ((7, 0, 1), ["--profile", "grpo"]),
}


def job(group: str, seed: int, words: Sequence[str]) -> dict[str, Any]:
    """Run the recipe once; its figures, with the command that made them."""
    with tempfile.TemporaryDirectory() as folder:
        command = ["agentrecipes", "run", RECIPE, f"seed={seed}", *words, "--json"]
        place = ["--run-dir", f"{folder}/run", "--runs-dir", folder]
        program = [str(Path(sys.executable).parent / "agentrecipes"), *command[1:], *place]
        done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=False)
        if not done.stdout:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        summary = json.loads(done.stdout)
    kept = ("status", "recipe_hash", "seed", "wall_seconds", "stages", "evaluations", "tripwires")
    print(f"{group} seed {seed}: {summary['status']}, {figure(summary):.3f}", flush=True)
    return {"command": " ".join(command), **{key: summary[key] for key in kept}}


def value(run: dict[str, Any], split: str, mode: str, *, last: bool = True) -> float:
    """The first or last exact match of a split and mode in the collecting stage."""
    rows = [
        row
        for row in run["evaluations"]
        if row["stage"] == "reinforce" and (row["split"], row["mode"]) == (split, mode)
    ]
    return float(rows[-1 if last else 0]["value"]) if rows else math.nan


def figure(run: dict[str, Any]) -> float:
    return value(run, "test", "sampled")


def rounds(run: dict[str, Any], mode: str = "sampled") -> float:
    rows = [r for r in run["evaluations"] if r["split"] == "test" and r["mode"] == mode]
    return float(rows[-1]["rounds_mean"]) if rows else math.nan


def curve(runs: Sequence[dict[str, Any]]) -> list[tuple[int, list[float]]]:
    """(iteration, sampled exact match on dev of each run)."""
    points: dict[int, list[float]] = {}
    for run in runs:
        for row in run["evaluations"]:
            if (row["stage"], row["split"], row["mode"]) == ("reinforce", "dev", "sampled"):
                points.setdefault(row["iteration"], []).append(row["value"])
    return sorted(points.items())


def picture(runs: Sequence[dict[str, Any]]) -> str:
    """The curve as an SVG: each seed thin, their mean thick."""
    points = curve(runs)
    width, height, left, bottom = 640, 300, 44, 32
    most = max(iteration for iteration, _ in points)

    def at(iteration: float, score: float) -> str:
        x = left + (width - left - 12) * iteration / most
        return f"{x:.1f},{height - bottom - (height - bottom - 14) * score:.1f}"

    marks = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(0, tick).split(",")
        marks.append(f'<path d="M{x} {y}H{width - 12}" stroke="#8884" fill="none"/>')
        marks.append(
            f'<text x="{left - 6}" y="{float(y) + 4:.0f}" text-anchor="end">{tick:g}</text>'
        )
    for iteration, _ in points[::2]:
        x = at(iteration, 0).split(",")[0]
        marks.append(f'<text x="{x}" y="{height - 12}" text-anchor="middle">{iteration}</text>')
    for n in range(len(runs)):
        line = " ".join(at(i, scores[n]) for i, scores in points if len(scores) > n)
        marks.append(
            f'<polyline points="{line}" fill="none" stroke="#3b82f680" stroke-width="1.2"/>'
        )
    mean = " ".join(at(i, sum(s) / len(s)) for i, s in points)
    marks.append(f'<polyline points="{mean}" fill="none" stroke="#2563eb" stroke-width="3"/>')
    title = f"sampled exact match on unseen entities, {len(runs)} seeds and their mean"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="#666"><title>{title}</title>'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>{"".join(marks)}'
        f'<text x="{width - 16}" y="{height - bottom - 8}" text-anchor="end">RL iteration</text>'
        "</svg>\n"
    )


TITLES = {
    "seeds": "The default: PPO, up to three queries a turn",
    "control": "Control: the reward is a constant, so there is nothing to learn",
    "one_query": "One query a turn",
    "grpo": "GRPO in the place of PPO",
}


def page(kept: dict[str, list[dict[str, Any]]]) -> str:
    """docs/results/rag_r1.md: a table per group, each row with the command that made it."""
    lines = [
        "# What the default recipe reaches",
        "",
        "Made by `python bench/default_recipe.py`; all summaries: [rag_r1.json](rag_r1.json).",
        "Exact match; *before* is after imitation, on dev (entities that training never showed);",
        "*after* is on test (another world). Sampled is at temperature 1. Rounds are turns with a",
        "search, a mean over test questions. CPU and wall seconds depend on the machine.",
        "",
        "![Sampled exact match on dev over the iterations of PPO](rag_r1.svg)",
        "",
    ]
    for group, runs in kept.items():
        lines += [
            f"## {TITLES[group]}",
            "",
            "| seed | sampled before | sampled after | greedy after | rounds | wall s |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for run in runs:
            before = value(run, "dev", "sampled", last=False)
            greedy = value(run, "test", "greedy")
            cells = f"{before:.3f} | {figure(run):.3f} | {greedy:.3f} | {rounds(run):.2f}"
            lines.append(f"| {run['seed']} | {cells} | {run['wall_seconds']:.0f} |")
        scores = [figure(run) for run in runs]
        lines += ["", f"Mean {sum(scores) / len(scores):.3f}, lowest {min(scores):.3f}.", ""]
        lines += [f"`{runs[0]['command']}`, recipe {runs[0]['recipe_hash'][:12]}", ""]
    return "\n".join(lines)


def main() -> None:
    """Run what was asked for and write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=sorted(GROUPS), action="append")
    parser.add_argument("--quick", action="store_true")
    words = parser.parse_args()
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / "rag_r1.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    wanted = {name: GROUPS[name] for name in words.only or GROUPS}
    if words.quick:
        wanted = {"seeds": ((7,), [])}
    jobs = [(group, seed, more) for group, (seeds, more) in wanted.items() for seed in seeds]
    with ThreadPoolExecutor(words.workers) as pool:
        runs = list(pool.map(lambda each: job(*each), jobs))
    if words.quick:
        print(
            json.dumps({"test_sampled": figure(runs[0]), "wall_seconds": runs[0]["wall_seconds"]})
        )
        return
    for name in wanted:
        kept[name] = [run for (group, _, _), run in zip(jobs, runs, strict=True) if group == name]
    path.write_text(json.dumps(kept, indent=1) + "\n")
    (RESULTS / "rag_r1.md").write_text(page(kept))
    if "seeds" in kept:
        (RESULTS / "rag_r1.svg").write_text(picture(kept["seeds"]))


if __name__ == "__main__":
    main()
