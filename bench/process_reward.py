"""Two behaviours with one outcome: does a reward by turn tell them apart, and nothing else does?

    python bench/process_reward.py --seeds 7 0 1      # both arms, about a minute of CPU a run
    python bench/process_reward.py --seeds 7          # adds a seed to those that are stored

The recipe is bench/process_reward.yaml. Half of the imitated trajectories answer before the second
of two look-ups; the outcome is 1 for all of them. *shown* is the share of trajectories on dev
whose observations show the gold answer, so of those that looked on. Both arms of a seed begin at
one checkpoint. Figures go to docs/results/process_reward.json and .md.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

from runs import RESULTS, rows, run

RECIPE = "bench/process_reward.yaml"
STORE, PAGE = RESULTS / "process_reward.json", RESULTS / "process_reward.md"
ARMS = {
    "with the process reward": [],
    "without it": ["stages.reinforce.rewards=[constant]"],
}
LEARNED, STILL = 0.2, 0.1  # at least so much more on every seed; at most so much either way
INTRODUCTION = """# A reward by turn that alone tells two behaviours apart

Made by `python bench/process_reward.py --seeds 7 0 1`; all runs:
[process_reward.json](process_reward.json). Questions of two hops in the generated world. The
outcome of every trajectory is 1, after one look-up or after two; half of the demonstrations stop
after one. With `{name: progress, of: gold, scope: turn}` beside it, the turn whose observation
shows the gold answer earns 1 more. *Shown* is the share of 400 sampled trajectories on dev that
saw the gold answer, before and after 25 iterations of PPO; *answered* is the share that gave an
answer. (An outcome of 1 for an answer alone is not the same for both behaviours: who looks on
answers a little less often. With it, and without the process reward, *shown* fell from .34 to .12
on seed 7.)

| rewards | seed | shown before | shown after | answered after | s |
| --- | --- | --- | --- | --- | --- |"""


def figures(made: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a run."""
    found = {
        metric: [row["value"] for row in rows(made, "dev", "sampled") if row["metric"] == metric]
        for metric in ("retrieval_hit", "answer_present")
    }
    return {
        "command": made["command"],
        "recipe_hash": made["recipe_hash"],
        "seed": made["seed"],
        "wall_seconds": round(sum(stage["wall_seconds"] for stage in made["stages"]), 1),
        "shown": found["retrieval_hit"],
        "answered": found["answer_present"],
    }


def page(kept: dict[str, list[dict[str, Any]]]) -> str:
    """docs/results/process_reward.md."""
    lines = [INTRODUCTION]
    for arm, runs in kept.items():
        for made in runs:
            cells = [arm, str(made["seed"])]
            cells += [f"{made['shown'][0]:.2f}", f"{made['shown'][-1]:.2f}"]
            cells += [f"{made['answered'][-1]:.2f}", f"{made['wall_seconds']:.0f}"]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def wrong(kept: dict[str, list[dict[str, Any]]]) -> list[str]:
    """What does not come out as promised."""
    found = []
    for arm, words in ARMS.items():
        for made in kept.get(arm, []):
            change = made["shown"][-1] - made["shown"][0]
            if (abs(change) > STILL) if words else (change < LEARNED):
                found.append(f"{arm}, seed {made['seed']}: shown changed by {change:.2f}")
    return found


def main() -> None:
    """Run both arms of each seed; write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[7, 0, 1])
    asked = parser.parse_args()
    kept = json.loads(STORE.read_text()) if STORE.exists() else {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in asked.seeds:
            for arm, words in ARMS.items():
                place = Path(folder) / f"{len(words)}-{seed}"
                made = figures(run([RECIPE, f"seed={seed}", *words, "--reuse"], place))
                print(f"{arm}, seed {seed}: shown {made['shown']}", flush=True)
                others = [each for each in kept.get(arm, []) if each["seed"] != seed]
                kept[arm] = [*others, made]
                STORE.write_text(json.dumps(kept, indent=1) + "\n")
                PAGE.write_text(page(kept))
    for line in wrong(kept):
        print(line)
    raise SystemExit(bool(wrong(kept)))


if __name__ == "__main__":
    main()
