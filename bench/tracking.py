"""What MLflow costs a run: the same recipe with and without it, by turns, in CPU seconds.

    python bench/tracking.py            # 5 pairs of the default recipe, cut to 10 iterations
    python bench/tracking.py 2 stages.reinforce.iterations=3

Two figures, because MLflow works in a process of its own: the training process alone, which is what
training waits for, and all processes together. The wall time of a pair says something on a quiet
machine only.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SHORT = ["stages.reinforce.iterations=10", "evaluation.every=5"]
# The training process says its own CPU time, without its children's, at its end.
PROGRAM = """
import atexit, os, sys, time
atexit.register(lambda: print("own", time.process_time(), file=sys.stderr))
from agentrecipes.cli.main import main
main()
"""


def measured(backend: str, words: list[str]) -> dict[str, float]:
    """Own and whole CPU seconds, and wall seconds, of one run."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROGRAM, "run", "recipes/rag_r1.yaml", *SHORT, *words]
        command += [f"tracking.backend={backend}", "--runs-dir", folder]
        before, began = os.times(), time.perf_counter()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        wall, after = time.perf_counter() - began, os.times()
    own = next(line for line in reversed(done.stderr.splitlines()) if line.startswith("own "))
    whole = after.children_user + after.children_system
    whole -= before.children_user + before.children_system
    return {"own": float(own.split()[1]), "whole": whole, "wall": wall}


def main(words: list[str]) -> None:
    """Measure the pairs and print what tracking adds."""
    pairs = int(words[0]) if words else 5
    found: dict[str, list[dict[str, float]]] = {"none": [], "mlflow": []}
    for index in range(pairs):
        order = ("none", "mlflow") if index % 2 == 0 else ("mlflow", "none")
        for backend in order:
            found[backend].append(measured(backend, words[1:]))
    told: dict[str, Any] = {"command": " ".join(["python bench/tracking.py", *words])}
    for key in ("own", "whole", "wall"):
        ratios = [
            one[key] / two[key] for one, two in zip(found["mlflow"], found["none"], strict=True)
        ]
        told[key] = {"added": statistics.median(ratios) - 1, "pairs": ratios}
    told["holds"] = told["own"]["added"] < 0.03
    print(json.dumps(told, indent=1))
    raise SystemExit(0 if told["holds"] else 1)


if __name__ == "__main__":
    main(sys.argv[1:])
