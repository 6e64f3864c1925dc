"""How near `agentrecipes plan` comes to the memory that runs really take.

    python bench/plan.py                 # all configurations, one after the other; some minutes
    python bench/plan.py --only tiny,2M

Every configuration is trained for two iterations in a process of its own, whose largest resident
size is held against the plan's total. Trajectories go to their limits: an untrained model rarely
stops by itself.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PARTS = Path(__file__).parents[1] / "tests" / "e2e" / "parts"
SMALL = {"name": "tiny", "width": 192, "layers": 5, "heads": 6, "mlp": 512}
MIDDLE = {"name": "tiny", "width": 384, "layers": 8, "heads": 12, "mlp": 1024}
LARGE = {"name": "tiny", "width": 576, "layers": 30, "heads": 18, "mlp": 1536}
GRPO: dict[str, Any] = {"name": "grpo"}
REFERENCE = {"name": "grpo", "kl": {"place": "loss", "coefficient": 0.01}}
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "tiny, value head": {"model": {"name": "tiny"}, "algorithm": {"name": "ppo"}},
    "tiny, groups of 32": {"model": {"name": "tiny"}, "algorithm": GRPO, "group": 32},
    "2M, reference": {"model": SMALL, "algorithm": REFERENCE},
    "15M, full": {"model": MIDDLE, "algorithm": GRPO},
    "15M, groups of 16": {"model": MIDDLE, "algorithm": GRPO, "group": 16, "batch": 4096},
    "15M, LoRA": {"model": MIDDLE, "algorithm": GRPO, "lora": True},
    "2M, LoRA": {"model": SMALL, "algorithm": GRPO, "lora": True},
    "15M, LoRA, groups of 16": {
        "model": MIDDLE,
        "algorithm": GRPO,
        "group": 16,
        "batch": 4096,
        "lora": True,
    },
    "100M, full": {"model": LARGE, "algorithm": GRPO, "batch": 512},
    "100M, value head, reference": {
        "model": LARGE,
        "algorithm": {**REFERENCE, "name": "ppo"},
        "batch": 512,
    },
}


def recipe_text(name: str, folder: Path) -> str:
    """The configuration as a recipe; a model that is read from files is written first."""
    wanted = CONFIGURATIONS[name]
    model = wanted["model"]
    if wanted.get("lora"):
        model = {"name": "hf", "path": str(written(model, folder)), "lora": {"rank": 8}}
    recipe = {
        "name": "plan",
        "seed": 7,
        "model": model,
        "environment": {
            "name": "search",
            "dataset": {"name": "world", "chains": [1, 2], "conjunctions": [2]},
            "retriever": {"name": "bm25", "top_k": 2},
            "protocol": {"name": "search_tags", "queries_per_turn": 2},
            "max_turns": 3,
        },
        "rewards": ["spread"],
        "algorithm": wanted["algorithm"],
        "rollout": {
            "tasks": 4,
            "group_size": wanted.get("group", 4),
            "tokens": 256,
            "tokens_per_turn": 128,
        },
        "trainer": {"tokens_per_batch": wanted.get("batch", 2048), "checkpoint_every": 1},
        "evaluation": {"every": 0, "tasks": 2, "modes": ["greedy"]},
        "tracking": {"backend": "none"},
        "iterations": 2,
    }
    return json.dumps(recipe)  # which is YAML


def written(model: dict[str, Any], folder: Path) -> Path:
    """A folder that transformers loads, with a fresh model of this shape."""
    from agentrecipes.components import build

    part = build("model", model)
    part.build(0).save_pretrained(folder / "model")
    part.tokenizer().save_pretrained(folder / "model")
    return folder / "model"


def child(file: Path) -> None:
    """Train the recipe and print the process's largest resident size, in bytes."""
    from agentrecipes.cli.main import main as command

    code = 1
    try:
        command(["run", str(file), "--run-dir", str(file.parent / "run"), "--parts", str(PARTS)])
    except SystemExit as end:
        code = int(end.code or 0)
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sys.stderr.write(f"PEAK {size} {code}\n")


def measured(name: str) -> dict[str, Any]:
    """Plan and run one configuration."""
    with tempfile.TemporaryDirectory() as place:
        file = Path(place) / "plan.yaml"
        file.write_text(recipe_text(name, Path(place)))
        code = "from agentrecipes.cli.main import main; main()"
        words = [sys.executable, "-c", code, "plan", str(file), "--parts", str(PARTS), "--json"]
        planned = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
        done = subprocess.run(
            [sys.executable, __file__, "--child", str(file)], capture_output=True, text=True
        )
    last = done.stderr.strip().splitlines()[-1].split()
    if last[0] != "PEAK" or last[2] != "0":
        raise SystemExit(f"{name}: {done.stderr}")
    predicted, size = planned["memory"]["total_bytes"], int(last[1])
    terms = {term["name"]: round(term["bytes"] / 2**20, 1) for term in planned["memory"]["terms"]}
    return {
        "configuration": name,
        "predicted_mib": round(predicted / 2**20),
        "measured_mib": round(size / 2**20),
        "ratio": round(predicted / size, 3),
        "peak": planned["peak"],
        "terms_mib": terms,
    }


def main() -> None:
    """Measure the configurations; print a line each, and all of it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, or how they begin, with commas")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.child is not None:
        return child(wanted.child)
    only = tuple(name for name in wanted.only.split(",") if name)
    found = []
    for name in CONFIGURATIONS:
        if not only or name.startswith(only):
            found.append(measured(name))
            one = found[-1]
            line = f"{one['predicted_mib']:6} / {one['measured_mib']:6} MiB = {one['ratio']:.2f}"
            print(f"{name:30} {line}  {one['terms_mib']}", flush=True)
    if wanted.json is not None:
        wanted.json.write_text(json.dumps(found, indent=1))
    return None


if __name__ == "__main__":
    main()
