"""Every shipped recipe as it stands: the last quarter of its curve beside the first, by seed.

    python bench/recipes.py                            # all recipes, seeds 7, 0 and 1
    python bench/recipes.py --only search_r1,medqa --seeds 7 --workers 2

A recipe says in its first comment by how much: "the last quarter of the sampled curve lies at
least 0.20 above the first". The curve is its metric on dev, sampled, over the stages that collect;
quarters are those of its evaluations. A recipe without that sentence says what it shows instead
and is left out (`bench/default_recipe.py` has rag_r1).
Figures go to docs/results/recipes.{json,md}; the exit code is 1 where a margin is missed.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from runs import RESULTS, ROOT, run

SEEDS = (7, 0, 1)
PROMISE = re.compile(r"last quarter of the sampled curve lies at least ([\d.]*\d) above the first")


def promises() -> dict[str, float]:
    """By recipe: the margin that its first comment states."""
    found = {}
    for path in sorted((ROOT / "recipes").glob("*.yaml")):
        head = " ".join(line.lstrip("# ") for line in comment(path))
        if said := PROMISE.search(head):
            found[path.stem] = float(said[1])
    return found


def comment(path: Path) -> list[str]:
    """The lines before the first key."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines[: next(n for n, line in enumerate(lines) if not line.startswith("#"))]


def sampled(made: dict[str, Any]) -> list[float]:
    """The metric on dev over the evaluations of the stages that collect."""
    collect = {stage["name"] for stage in made["stages"] if stage["iterations"]}
    return [
        row["value"]
        for row in made["evaluations"]
        if (row["split"], row["mode"]) == ("dev", "sampled") and row["stage"] in collect
    ]


def quarters(curve: Sequence[float]) -> tuple[float, float]:
    """The means of the first and of the last quarter, each of one point at least."""
    size = max(1, len(curve) // 4)
    return sum(curve[:size]) / size, sum(curve[-size:]) / size


def job(recipe: str, seed: int) -> dict[str, Any]:
    """Run a recipe with a seed; its figures."""
    made = run([f"recipes/{recipe}.yaml", f"seed={seed}"])
    curve = sampled(made)
    first, last = quarters(curve)
    print(f"{recipe} seed {seed}: {made['status']}, {first:.3f} -> {last:.3f}", flush=True)
    return {**made, "curve": curve, "first": first, "last": last}


def page(kept: dict[str, dict[str, Any]]) -> str:
    """docs/results/recipes.md."""
    lines = [
        "# What the shipped recipes learn",
        "",
        "Made by `python bench/recipes.py`; all summaries: [recipes.json](recipes.json). The",
        "metric is the data set's own, sampled on dev; *first* and *last* are the means of the",
        "first and the last quarter of the evaluations of the stages that collect.",
        "",
        "| recipe | seed | first | last | gain | promised | wall s |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for recipe, found in sorted(kept.items()):
        for made in found["runs"]:
            figures = (made["first"], made["last"], made["last"] - made["first"], found["promised"])
            cells = " | ".join(f"{figure:.3f}" for figure in figures)
            lines.append(f"| {recipe} | {made['seed']} | {cells} | {made['wall_seconds']:.0f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is asked for, keep it beside what was kept before, and say whether promises hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="recipes, with commas")
    parser.add_argument("--seeds", type=int, nargs="+", default=list(SEEDS))
    parser.add_argument("--workers", type=int, default=1)
    words = parser.parse_args()
    wanted = {k: m for k, m in promises().items() if not words.only or k in words.only.split(",")}
    path = RESULTS / "recipes.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    with ThreadPoolExecutor(words.workers) as pool:
        jobs = {
            recipe: [pool.submit(job, recipe, seed) for seed in words.seeds] for recipe in wanted
        }
        for recipe, started in jobs.items():
            runs = [each.result() for each in started]
            kept[recipe] = {"promised": wanted[recipe], "runs": runs}
            path.write_text(json.dumps(kept, indent=1) + "\n")
    (RESULTS / "recipes.md").write_text(page(kept))
    missed = [
        f"{recipe} seed {made['seed']}"
        for recipe in wanted
        for made in kept[recipe]["runs"]
        if made["last"] - made["first"] < wanted[recipe]
    ]
    raise SystemExit(f"below what they promise: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
