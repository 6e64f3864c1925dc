"""Studies: their published results, what pruning saves, and what a killed sweep loses.

    python bench/sweeps.py publish sweeps/rag_r1.yaml   # docs/results/sweep-rag_r1.json and .md
    python bench/sweeps.py pruning sweeps/rag_r1.yaml   # all trials to their end, then pruned again
    python bench/sweeps.py recorded sweeps/rag_r1.yaml  # the pruner over recorded curves, seconds
    python bench/sweeps.py resume                       # 12 trials, killed at 5, resumed

`pruning` runs the study without its pruner and then replays the pruner over the stored curves,
trial by trial in their order: what it would have ended, what that saves, and whether the best trial
is still there. With a sampler that learns, the trials of a pruned study differ; the replay compares
like with like. Words after the file are overrides of the recipe.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

Curves = Sequence[tuple[Sequence[Sequence[Any]], float]]
"""The curve of each trial, [(step, value)], and what it came to."""

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
PROGRAM = [sys.executable, "-c", "from agentrecipes.cli.main import main; main()"]
WORKERS = "2"
TINY = [
    "model.layers=1",
    "rollout.tasks=4",
    "rollout.tokens=128",
    "rollout.tokens_per_turn=16",
    "evaluation.tasks=4",
    "tripwires.no_signal.action=warn",
    "tripwires.dead_type.action=warn",
    "stages.imitate.steps=8",
    "stages.imitate.demonstrations.count=40",
    "stages.reinforce.trainer.checkpoint_every=1",
    "tracking.backend=none",
]


def sweep(path: Path, *words: str, runs: Path) -> dict[str, Any]:
    """The outcome of ``agentrecipes sweep``, with its command."""
    given = ["sweep", str(path), *words, "--workers", WORKERS]
    done = subprocess.run(
        [*PROGRAM, *given, "--runs-dir", str(runs), "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise SystemExit(f"agentrecipes {' '.join(given)} ended with {done.returncode}")
    return {"command": f"agentrecipes {' '.join(given)}", **json.loads(done.stdout)}


def publish(path: Path, words: list[str]) -> dict[str, Any]:
    """Run a study and write its result."""
    began = time.perf_counter()
    told = sweep(path, *words, runs=ROOT / "runs")
    seconds = time.perf_counter() - began
    kept = {key: told[key] for key in ("command", "study", "trials", "best", "front")}
    kept |= {key: told[key] for key in ("finished", "pruned", "failed", "importances", "table")}
    kept["wall_seconds"] = seconds
    RESULTS.mkdir(parents=True, exist_ok=True)
    target = RESULTS / f"sweep-{told['study']}"
    target.with_suffix(".json").write_text(json.dumps(kept, indent=1) + "\n")
    target.with_suffix(".md").write_text(markdown(kept, told["objective"]))
    return kept


def markdown(kept: dict[str, Any], objectives: list[dict[str, Any]]) -> str:
    """A study as a page of the documentation."""
    names = [each["metric"] for each in objectives]
    paths = list(dict.fromkeys(path for row in kept["table"] for path in row["params"]))
    sign = -1 if objectives[0]["direction"] == "maximize" else 1
    rows = sorted(kept["table"], key=lambda row: (row["value"] is None, sign * (row["value"] or 0)))
    head = ["trial", "state", *names, *(f"`{path}`" for path in paths)]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for row in rows:
        values = [f"{value:.4g}" for value in row["values"]] or [""] * len(names)
        params = [shown(row["params"].get(path, "")) for path in paths]
        lines.append(f"| {' | '.join([str(row['number']), row['state'], *values, *params])} |")
    shares = [
        f"- {name}: " + ", ".join(f"`{path}` {share:.0%}" for path, share in each.items())
        for name, each in zip(names, kept["importances"], strict=True)
        if each
    ]
    depends = ["", "What it depends on (functional ANOVA):", "", *shares] if shares else []
    counts = ", ".join(f"{kept[word]} {word}" for word in ("finished", "pruned", "failed"))
    intro = f"Made by `{kept['command']}` in {kept['wall_seconds'] / 60:.0f} minutes: {counts}."
    return "\n".join([f"# Study {kept['study']}", "", intro, "", *lines, *depends, ""])


def shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value).replace("|", "\\|")


def pruning(path: Path, words: list[str]) -> dict[str, Any]:
    """What the study's pruner saves, and whether it keeps the best trial."""
    from agentrecipes.sweeps import samplers
    from agentrecipes.sweeps.load import load

    pruned = load(path, words)
    whole = path.with_name(f"{path.stem}-whole.yaml")
    lines = [line for line in path.read_text().splitlines() if not line.startswith("pruner")]
    whole.write_text("\n".join([*lines, ""]))
    try:
        told = sweep(whole, *words, runs=ROOT / "runs")
    finally:
        whole.unlink()
    direction = pruned.fields.objective[0].direction
    curves = [(row["curve"], row["value"]) for row in told["table"]]
    return {
        "command": f"python bench/sweeps.py pruning {path} {' '.join(words)}".strip(),
        **replayed(curves, samplers.pruner(pruned), direction),
    }


def replayed(curves: Curves, pruner: Any, direction: str) -> dict[str, Any]:
    """What a pruner makes of whole curves, trial by trial in their order."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(direction=direction, pruner=pruner)
    ended, whole, saved = [], 0, 0
    for number, (curve, last) in enumerate(curves):
        trial = study.ask()
        whole += curve[-1][0]
        for step, value in curve:
            trial.report(value, step)
            if trial.should_prune():
                ended.append(number)
                saved += curve[-1][0] - step
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
                break
        else:
            study.tell(trial, last)
    values = [last for _, last in curves]
    best = max(values) if direction == "maximize" else min(values)
    return {
        "trials": len(curves),
        "pruned": ended,
        "saved": saved / whole,
        "best": best,
        "best_after_pruning": study.best_value,
        "holds": saved / whole >= 0.25 and study.best_value == best,
    }


def recorded(path: Path) -> dict[str, Any]:
    """What the study's pruner makes of the curves of every algorithm that docs/results has."""
    from agentrecipes.sweeps import samplers
    from agentrecipes.sweeps.load import load

    sweep = load(path)
    kept = json.loads((RESULTS / "algorithms.json").read_text())
    runs = [run for index in range(3) for each in kept.values() for run in each["runs"][index:][:1]]
    curves = []
    for run in runs:
        values = [value for _, value in run["curve"]]
        curves.append((list(enumerate(values)), values[-1]))
    direction = sweep.fields.objective[0].direction
    return {
        "command": f"python bench/sweeps.py recorded {path}",
        **replayed(curves, samplers.pruner(sweep), direction),
    }


def resume() -> dict[str, Any]:
    """A study of 12 small trials on 2 workers, killed with -9 after 5 and resumed."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        path = folder / "small.yaml"
        path.write_text(
            f"recipe: {ROOT}/recipes/rag_r1.yaml\nobjective: {{metric: exact_match}}\n"
            "sampler: random\ntrials: 12\nset: {stages.reinforce.iterations: 4}\nspace:\n"
            "  stages.reinforce.optimizer.learning_rate: {float: [1e-4, 1e-2], log: true}\n"
        )
        words = [*PROGRAM, "sweep", str(path), *TINY, "--workers", WORKERS]
        words += ["--runs-dir", str(folder / "runs"), "--json"]
        first = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while finished(folder) < 5 and first.poll() is None:
            time.sleep(0.05)
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        before = summaries(folder)
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        told, after = json.loads(done.stdout), summaries(folder)
    numbers = [row["number"] for row in told["table"] if row["state"] == "finished"]
    again = [name for name, data in before.items() if after[name] != data]
    return {
        "command": "python bench/sweeps.py resume",
        "finished_before_the_kill": len(before),
        "finished": told["finished"],
        "runs": len(after),
        "run_again": again,
        "holds": numbers == list(range(12)) and len(after) == 12 and not again,
    }


def finished(folder: Path) -> int:
    try:
        with sqlite3.connect(f"file:{folder}/runs/sweeps.db?mode=ro", uri=True) as connection:
            query = "select count(*) from trials where state = 'COMPLETE'"
            return int(connection.execute(query).fetchone()[0])
    except sqlite3.OperationalError:  # not there yet
        return 0


def summaries(folder: Path) -> dict[str, bytes]:
    found = (folder / "runs").glob("*/summary.json")
    read = {path.parent.name: path.read_bytes() for path in found}
    return {name: data for name, data in read.items() if b'"status": "finished"' in data}


def main(words: list[str]) -> None:
    """Do what the first word says, and print it as JSON."""
    match words:
        case ["publish", path, *more]:
            told = publish(Path(path), more)
        case ["pruning", path, *more]:
            told = pruning(Path(path), more)
        case ["recorded", path]:
            told = recorded(Path(path))
        case ["resume"]:
            told = resume()
        case _:
            raise SystemExit(__doc__)
    print(json.dumps(told, indent=1))
    raise SystemExit(0 if told.get("holds", True) else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
