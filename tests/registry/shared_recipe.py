"""A recipe with a data file, a parent and a finished run, and a store that has it."""

from __future__ import annotations

import json
from pathlib import Path

from agentrecipes.recipe.load import Recipe, load
from agentrecipes.registry.index import Entry
from agentrecipes.registry.publish import push
from agentrecipes.registry.store import Folder

TEXT = """# Capitals (2026): what a store keeps of a recipe.
#   agentrecipes run capitals.yaml
name: capitals
extends: base.yaml
environment:
  name: search
  dataset: {name: jsonl, path: data/capitals.jsonl}
  retriever: {name: bm25, corpus: data/corpus.jsonl}
"""
BASE = """version: 1.2.0
seed: 3
model: tiny
rewards: [exact_match]
algorithm: grpo
rollout: {tasks: 2, group_size: 2}
iterations: 2
"""
LINE = {"id": "q1", "question": "capital of France?", "golden_answers": ["Paris"], "split": "train"}
PASSAGE = {"id": "p1", "title": "France", "text": "Its capital is Paris."}
FILES = ("base.yaml", "capitals.yaml", "data/capitals.jsonl", "data/corpus.jsonl", "recipe.lock")


def written(folder: Path) -> Path:
    """Write the recipe and what it reads; its file."""
    (folder / "data").mkdir(parents=True)
    (folder / "capitals.yaml").write_text(TEXT)
    (folder / "base.yaml").write_text(BASE)
    lines = [json.dumps({**LINE, "id": f"q{i}", "split": s}) for i, s in enumerate(SPLITS)]
    (folder / "data" / "capitals.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "data" / "corpus.jsonl").write_text(json.dumps(PASSAGE) + "\n")
    return folder / "capitals.yaml"


SPLITS = ("train", "dev", "test")


def finished(folder: Path, recipe: Recipe, *, seed: int, value: float) -> Path:
    """Write the summary of a run of the recipe; the run's folder."""
    row = {"stage": "stage", "iteration": 2, "mode": "sampled", "metric": "exact_match"}
    summary = {
        "status": "finished",
        "recipe_hash": recipe.hash,
        "seed": seed,
        "wall_seconds": 12.5,
        "evaluations": [
            {**row, "split": "dev", "value": 0.125, "tasks": 4},
            {**row, "split": "test", "value": value, "tasks": 4},
        ],
    }
    folder.mkdir(parents=True)
    (folder / "recipe.yaml").write_text(recipe.to_yaml())
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def stored(folder: Path) -> tuple[Path, Entry]:
    """A store with the recipe, and what was put there."""
    recipe = load(written(folder / "mine"))
    return folder / "store", push(recipe, Folder(folder / "store"))
