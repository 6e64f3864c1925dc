"""Learning curves of every algorithm on the embedded world, and a control that must not learn.

    python bench/algorithms.py --workers 2            # all of them, three seeds: under an hour
    python bench/algorithms.py --only grpo --only ppo # some
    python bench/algorithms.py --folder curves        # the same; killed, it goes on where it was
    python bench/algorithms.py --check                # seed 7 again, against the stored figures

All runs of a seed go on from one checkpoint, the one that the recipe's first stage leaves. The
control trains on rewards that have changed hands (bench/parts/shuffled.py): within each group where
the algorithm compares the attempts of a group, else among all attempts of an iteration. Figures go
to docs/results/algorithms.json and .md, a curve for each algorithm beside them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml
from runs import RECIPE, RESULTS, ROOT, Points, curve, picture, run, value

from agentrecipes.components import names
from agentrecipes.recipe.load import load

SEEDS = (7, 0, 1)
NAMES = [name for name in names("algorithm") if name != "sft"]
ITERATIONS = "stages.reinforce.iterations=30"  # where the default's curve has flattened
STORE = RESULTS / "algorithms.json"
LEARNED, STILL = 0.3, 0.1  # at least so much better on every seed; the control's mean at most
INTRODUCTION = """# What every algorithm learns

Made by `python bench/algorithms.py --workers 2`; all runs: [algorithms.json](algorithms.json).
Exact match at temperature 1; *before* is on dev, after imitation; *after* and *greedy* are on test,
after 30 iterations of RL with `stages.reinforce.algorithm.name=…` and nothing else changed: no
algorithm was tuned, so this is no ranking. *Shuffled*: the same, with rewards dealt out
again: within each group where the algorithm compares a group's attempts, else among all attempts of
an iteration (dealt within groups only, these others still hear which groups did well, and rose to
.40 to .77). All runs of a seed begin at one checkpoint. Each algorithm has a page
with its curve: [docs/algorithms](../algorithms/README.md).

| algorithm | before, by seed | after, by seed | mean | greedy | shuffled | s |
| --- | --- | --- | --- | --- | --- | --- |"""
OTHER_BASELINE = (  # not the group's: which groups did well would still be told
    *("ppo", "reinforce", "reinforce_pp", "reinforce_pp_baseline", "rft", "step_ppo", "vl_dac"),
)
NAME = "stages.reinforce.algorithm.name"


def stage_recipe(folder: Path, stage: int) -> Path:
    """The default recipe with one of its two stages."""
    recipe = yaml.safe_load((ROOT / RECIPE).read_text())
    del recipe["profiles"]
    recipe["stages"] = [recipe["stages"][stage]]
    if stage:
        recipe["model"] = {"name": "run", "path": "set-on-the-command-line"}
    path = folder / f"{recipe['stages'][0]['name']}.yaml"
    path.write_text(yaml.safe_dump(recipe, sort_keys=False))
    return path


def imitated(folder: Path, seed: int) -> Path:
    """The run folder of a seed's imitation."""
    place = folder / f"imitated-{seed}"
    if (place / "model").exists():
        return place
    run([str(stage_recipe(folder, 0)), f"seed={seed}", "tracking.backend=none"], place)
    return place


def words(name: str, *, control: bool) -> list[str]:
    """What the command line says of an algorithm."""
    if not control:
        return [f"{NAME}={name}", ITERATIONS]
    within = "batch" if name in OTHER_BASELINE else "group"
    part = f"{{name: shuffled, of: {name}, within: {within}}}"
    more = ["rollout.sampling=dynamic"] if name == "dapo" else []
    return ["--parts", "bench/parts", f"stages.reinforce.algorithm={part}", ITERATIONS, *more]


def learn(folder: Path, name: str, seed: int, *, control: bool) -> dict[str, Any]:
    """Reinforce from the seed's checkpoint; only the figures that are kept."""
    known = folder / f"{name}-{seed}{'-control' if control else ''}.json"
    if known.exists():
        return dict(json.loads(known.read_text()))
    more = [f"seed={seed}", *words(name, control=control)]
    start = f"model.path={folder / f'imitated-{seed}'}"
    recipe = folder / "reinforce.yaml"
    made = run([str(recipe), start, "tracking.backend=none", *more])
    found = {
        "command": " ".join(["agentrecipes", "run", RECIPE, *more]),
        "recipe_hash": "" if control else load(ROOT / RECIPE, more).hash,
        "seed": seed,
        "wall_seconds": round(made["wall_seconds"], 1),
        "before": value(made, "dev", "sampled", last=False),
        "after": value(made, "test", "sampled"),
        "greedy": value(made, "test", "greedy"),
        "curve": [[i, *scores] for i, scores in curve([made])],
    }
    known.write_text(json.dumps(found))
    label = f"{name}{' control' if control else ''} seed {seed}"
    print(f"{label}: {found['before']:.3f} -> {found['after']:.3f}", flush=True)
    return found


def interval(scores: Sequence[float]) -> tuple[float, float]:
    """Mean of a few seeds, and half its 95 % interval (Student's t)."""
    count, mean = len(scores), sum(scores) / len(scores)
    if count < 2:
        return mean, math.nan
    spread = math.sqrt(sum((x - mean) ** 2 for x in scores) / (count - 1) / count)
    return mean, {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78}.get(count, 2.57) * spread


def points(runs: Sequence[dict[str, Any]]) -> Points:
    """The stored curves of several seeds together."""
    together: dict[int, list[float]] = {}
    for made in runs:
        for iteration, score in made["curve"]:
            together.setdefault(iteration, []).append(score)
    return sorted(together.items())


def sentence(name: str, entry: dict[str, Any]) -> str:
    """What an algorithm's page says of its runs."""
    runs, control = entry["runs"], entry["control"]
    mean, half = interval([made["after"] for made in runs])
    seconds = sum(made["wall_seconds"] for made in runs) / len(runs)
    before = sum(made["before"] for made in runs) / len(runs)
    still, _ = interval([made["after"] for made in control])
    seeds = ", ".join(str(made["seed"]) for made in runs)
    hands = "among all attempts" if name in OTHER_BASELINE else "within each group"
    told = (
        f"Sampled exact match on the world's test questions, seeds {seeds}: {before:.2f} after "
        f"imitation, {mean:.2f} ± {half:.2f} after {runs[0]['curve'][-1][0]} iterations of RL "
        f"(95 % interval of the mean); {still:.2f} with rewards shuffled {hands} (grey). "
        f"{seconds:.0f} s of wall time for the RL stage, beside other work; recipe "
        f"`{runs[0]['recipe_hash'][:12]}`."
    )
    return f"{textwrap.fill(told, 118)}\n"


def page(kept: dict[str, Any]) -> str:
    """docs/results/algorithms.md."""
    lines = [INTRODUCTION]
    for name, entry in sorted(kept.items()):
        runs, control = entry["runs"], entry["control"]
        cells = [
            f"[`{name}`](../algorithms/{name}.md)",
            " ".join(f"{made['before']:.2f}" for made in runs),
            " ".join(f"{made['after']:.2f}" for made in runs),
            "{:.3f} ± {:.3f}".format(*interval([made["after"] for made in runs])),
            " ".join(f"{made['greedy']:.2f}" for made in runs),
            " ".join(f"{made['after']:.2f}" for made in control),
            f"{sum(made['wall_seconds'] for made in runs) / len(runs):.0f}",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def write(kept: dict[str, Any]) -> None:
    """Everything that is made from the stored figures."""
    STORE.write_text(json.dumps(kept, indent=1) + "\n")
    (RESULTS / "algorithms.md").write_text(page(kept))
    (RESULTS / "algorithms").mkdir(exist_ok=True)
    for name, entry in kept.items():
        title = f"{name}: sampled exact match on dev, each seed and their mean; grey: shuffled"
        made = picture(points(entry["runs"]), title, points(entry["control"]))
        (RESULTS / "algorithms" / f"{name}.svg").write_text(made)
        path = ROOT / "docs" / "algorithms" / f"{name}.md"
        head, _, rest = path.read_text().partition("\n## Fields\n")
        head = head.partition("\n## Learning curve\n")[0].rstrip("\n")
        image = f"![curves of {name}](../results/algorithms/{name}.svg)\n"
        told = f"\n\n## Learning curve\n\n{image}\n{sentence(name, entry)}"
        path.write_text(f"{head}{told}\n## Fields\n{rest}")


def verdicts(kept: dict[str, Any]) -> list[str]:
    """What does not come out as promised."""
    wrong = []
    for name, entry in kept.items():
        for made in entry["runs"]:
            if made["after"] - made["before"] < LEARNED:
                wrong.append(f"{name} seed {made['seed']}: {made['before']} -> {made['after']}")
        for made in entry["control"]:
            if made["after"] - made["before"] > STILL:
                wrong.append(f"{name} shuffled: {made['before']} -> {made['after']}")
    return wrong


def outside(kept: dict[str, Any], name: str, again: float) -> bool:
    """Whether a figure lies outside what the stored seeds leave room for: 3 of their spreads."""
    scores = [made["after"] for made in kept[name]["runs"]]
    mean = sum(scores) / len(scores)
    spread = math.sqrt(sum((x - mean) ** 2 for x in scores) / (len(scores) - 1))
    chance = math.sqrt(max(mean * (1 - mean), 0.01) / 150)  # of 150 questions
    return abs(again - mean) > 3 * math.hypot(spread, chance)


def main() -> None:
    """Run what was asked for; write it, or compare it with what is written."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--only", choices=NAMES, action="append")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--folder", type=Path, help="where what is done stays, to go on from")
    asked = parser.parse_args()
    kept = json.loads(STORE.read_text()) if STORE.exists() else {}
    wanted, seeds = asked.only or NAMES, SEEDS[:1] if asked.check else SEEDS
    with tempfile.TemporaryDirectory() as temporary, ThreadPoolExecutor(asked.workers) as pool:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        stage_recipe(folder, 1)
        list(pool.map(lambda seed: imitated(folder, seed), seeds))
        jobs = [(name, seed, False) for name in wanted for seed in seeds]
        if not asked.check:
            jobs += [(name, seeds[0], True) for name in wanted]
        made = list(pool.map(lambda job: learn(folder, *job[:2], control=job[2]), jobs))
    found = list(zip(jobs, made, strict=True))
    if asked.check:
        wrong = [n for (n, *_), each in found if outside(kept, n, each["after"])]
    else:
        for name in wanted:
            own = [(job[2], each) for job, each in found if job[0] == name]
            kept[name] = {
                "runs": [each for control, each in own if not control],
                "control": [each for control, each in own if control],
            }
        write(kept)
        wrong = verdicts({name: kept[name] for name in wanted})
    for line in wrong:
        print(f"not as promised: {line}")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
