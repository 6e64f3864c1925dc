"""How many tokens the choice of tasks saves: `uniform`, `success_band` and dynamic sampling.

    python bench/curricula.py --folder curves            # five seeds; killed, it goes on
    python bench/curricula.py --folder curves --seeds 7

The default world, in which three quarters of the questions now have one hop: imitation leaves them
nearly solved, and groups that are all right teach nothing. All arms of a seed begin at one
checkpoint. An arm has reached a score at the first evaluation that, with the next, is as good in
the mean; the score to reach is the mean of the last two of `uniform`. Tokens are all that the
policy wrote, groups that were sent away included (these by the iteration's mean length). Figures go
to docs/results/curricula.json and .md.
"""

from __future__ import annotations

import argparse
import json
from itertools import pairwise
from pathlib import Path
from statistics import mean
from typing import Any

from runs import RECIPE, RESULTS, rows, run

from agentrecipes.analysis.query import query

STORE, PAGE = RESULTS / "curricula.json", RESULTS / "curricula.md"
MIX = "{chain-1: 12, chain-2: 1, chain-3: 1, conjunction-2: 1, conjunction-3: 1}"
SETTING = [
    *("--profile", "grpo", "tracking.backend=none", f"environment.dataset.mix={MIX}"),
    *("stages.reinforce.iterations=40", "evaluation.every=5", "evaluation.tasks=300"),
    "evaluation.modes=[sampled]",
]
BAND = "{name: success_band, by: type, unknown: 0.25}"
ARMS = {
    "uniform": [],
    "success_band": [f"stages.reinforce.curriculum={BAND}"],
    "dynamic": ["stages.reinforce.rollout.sampling=dynamic"],
}
TOKENS = """
SELECT iteration,
  sum(value) FILTER (name = 'rollout/policy_tokens_mean') AS length,
  sum(value) FILTER (name = 'rollout/refilled_groups') AS refilled
FROM metrics WHERE run = '{run}' AND stage = 'reinforce' AND starts_with(name, 'rollout/')
GROUP BY iteration ORDER BY iteration
"""
INTRODUCTION = """# What the choice of tasks saves

Made by `python bench/curricula.py`; all runs: [curricula.json](curricula.json). Three quarters of
the questions have one hop and are nearly solved after imitation. *Tokens* are thousands that the
policy wrote until it reached, on dev and sampled, what `uniform` has at the end; *saved* is against
`uniform`'s own tokens until there; – is not within 40 iterations.

| seed | score to reach | arm | at the end | tokens | saved |
| --- | --- | --- | --- | --- | --- |"""

Curve = list[list[float]]
"""(policy tokens so far, score) at each evaluation."""


def learn(folder: Path, arm: str, seed: int) -> dict[str, Any]:
    """One run; only what is kept of it."""
    known = folder / f"{arm}-{seed}.json"
    if known.exists():
        return dict(json.loads(known.read_text()))
    place = folder / f"{arm}-{seed}"
    made = run([RECIPE, f"seed={seed}", *SETTING, *ARMS[arm], "--reuse"], place)
    spent, tokens = 0.0, {0: 0.0}
    for iteration, length, refilled in query(TOKENS.format(run=place.name), folder).rows:
        spent += length * 8 * (16 + refilled)  # attempts at a task, tasks
        tokens[iteration + 1] = spent
    found = {
        "command": made["command"],
        "recipe_hash": made["recipe_hash"],
        "seed": seed,
        "curve": [[tokens[row["iteration"]], row["value"]] for row in rows(made, "dev", "sampled")],
        "test": rows(made, "test", "sampled")[-1]["value"],
    }
    known.write_text(json.dumps(found))
    print(f"{arm}, seed {seed}: {[round(score, 2) for _, score in found['curve']]}", flush=True)
    return found


def target(curve: Curve) -> float:
    """The mean of the last two scores."""
    return mean(score for _, score in curve[-2:])


def reached(curve: Curve, score: float) -> float | None:
    """Tokens until the first evaluation that, with the next, has this mean score; None: never."""
    for (spent, one), (_, two) in pairwise(curve):
        if (one + two) / 2 >= score:
            return spent
    return None


def page(kept: dict[str, list[dict[str, Any]]]) -> str:
    """docs/results/curricula.md."""
    lines, saved = [INTRODUCTION], {arm: [] for arm in ARMS}
    for made in kept["uniform"]:
        score = target(made["curve"])
        whole = reached(made["curve"], score) or made["curve"][-1][0]
        for arm in ARMS:
            [own] = [each for each in kept[arm] if each["seed"] == made["seed"]]
            spent = reached(own["curve"], score)
            saved[arm].append(0.0 if spent is None else 1 - spent / whole)
            told = ["–", "–"] if spent is None else [f"{spent / 1e3:.0f}", f"{saved[arm][-1]:.0%}"]
            cells = [str(made["seed"]), f"{score:.3f}", arm, f"{target(own['curve']):.3f}", *told]
            lines.append(f"| {' | '.join(cells)} |")
    means = ", ".join(f"`{arm}` {mean(values):.0%}" for arm, values in saved.items() if values)
    return "\n".join([*lines, "", f"Saved in the mean, where never counts as 0: {means}.", ""])


def main() -> None:
    """Run all arms of each seed; write what came out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="+", default=[7, 0, 1, 2, 3])
    parser.add_argument("--folder", type=Path, required=True, help="where runs stay, to go on from")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    kept: dict[str, list[dict[str, Any]]] = {arm: [] for arm in ARMS}
    for seed in asked.seeds:
        for arm in ARMS:
            kept[arm].append(learn(asked.folder, arm, seed))
    STORE.write_text(json.dumps(kept, indent=1) + "\n")
    PAGE.write_text(page(kept))
    print(page(kept))


if __name__ == "__main__":
    main()
