"""What a run has to tell: the plain values behind its summary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentrecipes.health.tripwires import Verdict
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.schema import Stage
from agentrecipes.training.position import Position


@dataclass
class Story:
    """So far; a checkpoint holds it, so that a resumed run tells the whole."""

    stages: list[dict[str, Any]] = field(default_factory=list)
    evaluations: list[dict[str, Any]] = field(default_factory=list)
    tripwires: list[dict[str, Any]] = field(default_factory=list)
    watched: dict[str, list[dict[str, float]]] = field(default_factory=dict)  # by stage
    seconds: float = 0.0  # of earlier sittings
    reused: list[dict[str, Any]] = field(default_factory=list)  # stages that another run has run

    def stage_done(self, fields: Stage, position: Position, seconds: float) -> None:
        """A stage has come to its end."""
        reads = fields.algorithm.needs.demonstrations
        updates = fields.trainer.minibatches * fields.trainer.epochs
        self.stages.append(
            {
                "name": fields.name,
                "algorithm": fields.algorithm.part_name,
                "steps": position.iteration if reads else position.iteration * updates,
                "iterations": 0 if reads else position.iteration,
                "wall_seconds": seconds,
            }
        )

    def verdict(self, verdict: Verdict) -> None:
        """A tripwire has spoken."""
        self.tripwires.append(
            {
                "action": verdict.action,
                "message": verdict.message,
                "evidence": dict(verdict.evidence),
            }
        )

    def was_measured_at(self, stage: str, iteration: int, split: str) -> bool:
        """Whether there was this evaluation."""
        place = (stage, iteration, split)
        return any(
            (row["stage"], row["iteration"], row["split"]) == place for row in self.evaluations
        )

    def summary(
        self, recipe: Recipe, folder: Path, *, status: str, seconds: float
    ) -> dict[str, Any]:
        """``summary.json``; `seconds` are those of this sitting."""
        model, report = folder / "model", folder / "report.html"
        return {
            "run": folder.name,
            "dir": str(folder),
            "status": status,
            "recipe_hash": recipe.hash,
            "seed": recipe.seed,
            "profile": recipe.profile,
            "wall_seconds": self.seconds + seconds,
            "stages": self.stages,
            "reused": self.reused,
            "evaluations": self.evaluations,
            "tripwires": self.tripwires,
            "artifacts": {
                "model": str(model) if model.exists() else None,
                "report": str(report) if report.exists() else None,
                "mlflow_run_id": None,
            },
            "lost": [],
        }


def as_json(value: Mapping[str, Any]) -> bytes:
    """JSON as the run folder holds it."""
    return json.dumps(value, indent=1, ensure_ascii=False, default=str).encode()
