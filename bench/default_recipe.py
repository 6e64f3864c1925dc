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
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from runs import RECIPE, RESULTS, curve, picture, rows, run, value

SEEDS = (7, 0, 1, 2, 3, 4)
GROUPS: dict[str, tuple[Sequence[int], list[str]]] = {
    "seeds": (SEEDS, []),
    "control": ((7, 0), ["rewards=[constant]"]),
    "one_query": ((7, 0, 1), ["environment.protocol.queries_per_turn=1"]),
    "grpo": ((7, 0, 1), ["--profile", "grpo"]),
}


def job(group: str, seed: int, words: Sequence[str]) -> dict[str, Any]:
    """Run the recipe once; its figures, with the command that made them."""
    made = run([RECIPE, f"seed={seed}", *words])
    print(f"{group} seed {seed}: {made['status']}, {figure(made):.3f}", flush=True)
    return made


def figure(made: dict[str, Any]) -> float:
    return value(made, "test", "sampled")


def rounds(made: dict[str, Any]) -> float:
    return float(rows(made, "test", "sampled")[-1]["rounds_mean"])


TITLE = "sampled exact match on unseen entities, each seed and their mean"
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
        for made in runs:
            before = value(made, "dev", "sampled", last=False)
            greedy = value(made, "test", "greedy")
            cells = f"{before:.3f} | {figure(made):.3f} | {greedy:.3f} | {rounds(made):.2f}"
            lines.append(f"| {made['seed']} | {cells} | {made['wall_seconds']:.0f} |")
        scores = [figure(made) for made in runs]
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
        kept[name] = [made for (group, *_), made in zip(jobs, runs, strict=True) if group == name]
    path.write_text(json.dumps(kept, indent=1) + "\n")
    (RESULTS / "rag_r1.md").write_text(page(kept))
    if "seeds" in kept:
        (RESULTS / "rag_r1.svg").write_text(picture(curve(kept["seeds"]), TITLE))


if __name__ == "__main__":
    main()
