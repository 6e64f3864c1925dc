"""What a run leaves in its folder; trouble with one thing never loses another."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agentrecipes.components import added_files
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.lock import lock
from agentrecipes.recipe.schema import Stage
from agentrecipes.tracking.opening import run_info
from agentrecipes.tracking.protocol import Status, Tracker
from agentrecipes.tracking.replacing import write
from agentrecipes.tracking.report.page import write_report
from agentrecipes.tracking.tables import Tables
from agentrecipes.training import checkpoints
from agentrecipes.training.policy import Policy
from agentrecipes.training.position import Position
from agentrecipes.training.story import Story, as_json


@dataclass
class RunFolder:
    """One run's folder and what was said about it, from the lock to the last summary."""

    recipe: Recipe
    path: Path
    runs: Path  # where the runs are that are tracked together
    policy: Policy
    tables: Tables
    tracker: Tracker
    story: Story = field(default_factory=Story)
    began: float = field(default_factory=time.perf_counter)  # time.perf_counter() of this sitting

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    def open(self) -> None:
        """Write what identifies the run, before anything else."""
        self.path.mkdir(parents=True, exist_ok=True)
        write(self.path / "recipe.yaml", self.recipe.to_yaml().encode())
        locked = lock(self.recipe, extra_files=added_files())
        runs = str(self.runs.resolve())  # a resumed run is tracked where it was before
        write(self.path / "recipe.lock", as_json({**locked, "runs": runs}))
        self.tables.run(self.summary("running"), self.recipe.data)
        self.tracker.start(run_info(self.recipe, self.path, locked))

    def save(self, index: int, fields: Stage, position: Position) -> None:
        """Write a checkpoint of stage `index`."""
        state = {
            "stage": index,
            "position": asdict(position),
            "recipe_hash": self.recipe.hash,
            "seed": self.recipe.seed,
            "story": {**asdict(self.story), "seconds": self._elapsed()},
            "policy": self.policy.state(),
        }
        done, keep = position.iteration, fields.trainer.keep
        try:
            checkpoints.save(self.checkpoints, state, stage=index, done=done, keep=keep)
        except OSError as error:
            self.tables.lost.append(f"checkpoint {index}-{done}: {error}")

    def close(self, status: Status) -> dict[str, Any]:
        """Write model, summary and report, and end the tracking; return the summary."""
        if status != "failed":
            self.kept("model", lambda: self.policy.export(self.path / "model"))
        report = self.path / "report.html"
        self._settle(status)
        self.kept(report.name, lambda: write_report([self.path], report))
        for name in ("recipe.yaml", "recipe.lock", "summary.json", report.name, "model"):
            if (self.path / name).exists():
                self.tracker.artifact(self.path / name)
        self.tracker.finish(status)
        return self._settle(status)

    def kept(self, name: str, write: Callable[[], object]) -> None:
        """Call `write`; list `name` as lost where there is no room for it."""
        try:
            write()
        except OSError as error:
            self.tables.lost.append(f"{name}: not written: {error}")

    def summary(self, status: str) -> dict[str, Any]:
        """``summary.json`` as it is by now."""
        seconds = time.perf_counter() - self.began
        told = self.story.summary(self.recipe, self.path, status=status, seconds=seconds)
        told["artifacts"]["mlflow_run_id"] = self.tracker.run_id
        return told

    def _settle(self, status: Status) -> dict[str, Any]:
        """Write the summary as it is by now, with all that was lost on the way."""
        summary: Mapping[str, Any] = {**self.summary(status), "lost": self._lost()}
        self.tables.run(summary, self.recipe.data)
        self.kept("summary.json", lambda: write(self.path / "summary.json", as_json(summary)))
        return {**summary, "lost": self._lost()}

    def _lost(self) -> list[str]:
        return [*self.tables.lost, *self.tracker.lost]

    def _elapsed(self) -> float:
        """Seconds of this run, earlier sittings included."""
        return self.story.seconds + time.perf_counter() - self.began
