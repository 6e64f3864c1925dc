"""What a run leaves in its folder; trouble with one thing never loses another."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agentrecipes.components import added_files
from agentrecipes.errors import CheckFailed
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.lock import compare, lock
from agentrecipes.recipe.schema import Stage
from agentrecipes.tracking.events import Events
from agentrecipes.tracking.opening import run_info
from agentrecipes.tracking.protocol import Status, Tracker, Within
from agentrecipes.tracking.replacing import write
from agentrecipes.tracking.report.page import write_report
from agentrecipes.tracking.tables import Tables
from agentrecipes.training import checkpoints, ranks
from agentrecipes.training.policy import Policy
from agentrecipes.training.position import Position
from agentrecipes.training.reuse import Stages
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
    stages: Stages | None = None  # where stages are kept for other runs
    note: Callable[[str], None] = print  # to whoever watches
    within: Within = field(default_factory=Within)
    began: float = field(default_factory=time.perf_counter)  # time.perf_counter() of this sitting

    @property
    def saved(self) -> Path:
        return self.path / "checkpoints"

    def __post_init__(self) -> None:
        self.events = Events(self.path / "events.jsonl" if ranks.leads() else None)

    def newest(self) -> checkpoints.Found | None:
        """The checkpoint to go on from; what is newer, and what a kill left half done, is removed.

        Raises:
            CheckFailed: it is another recipe's, or another seed's; nothing was changed.
        """
        found = checkpoints.newest(self.saved)
        own = (self.recipe.hash, self.recipe.seed)
        if found is not None and (found.state["recipe_hash"], found.state["seed"]) != own:
            raise CheckFailed(f"{found.path} belongs to another recipe; nothing was changed")
        for fault in () if found is None else found.passed_over:
            self.note(f"checkpoint passed over: {fault}")
        if not ranks.leads():
            return found
        checkpoints.tidy(self.saved, found)
        for half in list(self.path.rglob(".*.tmp")):
            shutil.rmtree(half) if half.is_dir() else half.unlink(missing_ok=True)
        reached = -1 if found is None else int(found.state["stage"])
        for index, stage in enumerate(self.recipe.stages):
            done = found.state["position"]["iteration"] if found and index == reached else -1
            if index >= reached:
                self.tables.forget(stage.name, done)
        return found

    def open(self) -> None:
        """Write what identifies the run, ``recipe.yaml`` before anything else."""
        if not ranks.leads():
            return
        self.path.mkdir(parents=True, exist_ok=True)
        locked = lock(self.recipe, extra_files=added_files())
        new = not (self.path / "recipe.yaml").exists()
        if new:
            write(self.path / "recipe.yaml", self.recipe.to_yaml().encode())
        if not new and (self.path / "recipe.lock").exists():
            self._require_same(locked)
        else:  # it is new, or was killed before it had one
            runs = str(self.runs.resolve())  # a resumed run is tracked where it was before
            write(self.path / "recipe.lock", as_json({**locked, "runs": runs}))
        self.tables.run(self.summary("running"), self.recipe.data)
        self.tracker.start(run_info(self.recipe, self.path, locked, within=self.within))

    def _require_same(self, locked: Mapping[str, Any]) -> None:
        """Say which inputs are no longer those that the run began with."""
        before = json.loads((self.path / "recipe.lock").read_bytes())
        for name in compare(before, locked):
            self.note(f"{name} is not what the run began with: it goes on, but not bit for bit")

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
            checkpoints.save(self.saved, state, stage=index, done=done, keep=keep)
        except OSError as error:
            self.tables.lost.append(f"checkpoint {index}-{done}: {error}")
            self.events.add("lost", what=f"checkpoint {index}-{done}", reason=str(error))
            self.note(f"checkpoint not written, the ones before stay: {error}")
        else:
            self.events.add("checkpoint", stage=fields.name, iteration=done)

    def stage_done(self, index: int, done: int) -> None:
        """Keep a stage that is complete at `done`, where stages are kept."""
        if self.stages is not None:
            stages = self.stages
            self.kept(f"stage {index} for others", lambda: stages.keep(index, done))

    def close(self, status: Status) -> dict[str, Any]:
        """Write model, summary and report, and end the tracking; return the summary."""
        if not ranks.leads():
            return self.summary(status)
        if status != "failed":
            self.kept("model", lambda: self.policy.export(self.path / "model"))
        report = self.path / "report.html"
        self._settle(status)
        self.kept(report.name, lambda: write_report([self.path], report))
        for name in ("recipe.yaml", "recipe.lock", "summary.json", report.name):
            if (self.path / name).exists():
                self.tracker.artifact(self.path / name)
        if (model := self.path / "model").exists():
            (self.tracker.model if status == "finished" else self.tracker.artifact)(model)
        self.tracker.finish(status)
        self.events.add("ended", status=status)
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
