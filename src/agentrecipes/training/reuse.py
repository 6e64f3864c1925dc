"""Stages that were run already: kept by all that they depend on, and put in place of a new run's.

What is kept is a checkpoint from the end of the stage and the rows that the tables had by then. A
run that reuses a stage is one that was interrupted right there and goes on: the road by which any
run is resumed, to the same weights and rows bit for bit.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import platform
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from agentrecipes.components import added_files
from agentrecipes.recipe.load import Recipe
from agentrecipes.recipe.lock import lock
from agentrecipes.tracking import compaction, manifest
from agentrecipes.training import checkpoints

TABLES = ("metrics", "evaluations", "trajectories", "turns")
WAIT_SECONDS = 0.2  # between two looks at a stage that another run is busy with


@dataclass
class Stages:
    """The stages in ``runs/stages``, for one run of a recipe."""

    runs: Path
    recipe: Recipe
    run: Path  # the run's folder
    stopping: Callable[[], bool] = lambda: False
    _lock: IO[str] | None = field(default=None, init=False)

    @property
    def reusable(self) -> range:
        """Indices of the stages that are kept: all but the last, which is what the run is about."""
        return range(len(self.recipe.stages) - 1)

    def key(self, index: int) -> str:
        """SHA-256 (hex) of all that the end of a stage depends on.

        The stages up to it with every field, the model, the seed, the packages, the files that the
        recipe names, and the machine: another processor rounds otherwise.
        """
        locked = lock(self.recipe, extra_files=added_files())["inputs"]
        depends = {
            "inputs": {name: value for name, value in locked.items() if name != "recipe"},
            "machine": _machine(),
            "seed": self.recipe.seed,
            "model": self.recipe.data["model"],
            "stages": self.recipe.data["stages"][: index + 1],
        }
        text = json.dumps(depends, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(text.encode()).hexdigest()

    def take(self) -> str | None:
        """Put the longest stretch of stages that was run already into the run's folder.

        Returns the name of the last of them; None where there is none. While another run is busy
        with the next stage this waits for it, for otherwise both would do the same work.
        """
        self.release()
        while not self.stopping():
            found = self._found()
            following = 0 if found is None else found + 1
            if following not in self.reusable or self._locked(following):
                if found == self._found():
                    return None if found is None else self._place(found)
                self.release()
            else:
                time.sleep(WAIT_SECONDS)
        return None

    def keep(self, index: int, done: int) -> None:
        """Keep stage `index`, which is complete at `done`; another run that waits may go on.

        Raises:
            OSError: there is no room for it; the run itself has lost nothing.
        """
        try:
            if index in self.reusable:
                self._keep(index, done)
        finally:
            self.release()

    def release(self) -> None:
        """Let others run the stage that this run was expected to keep."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _found(self) -> int | None:
        kept = [index for index in self.reusable if (self._folder(index) / "tables").is_dir()]
        return kept[-1] if kept else None

    def _folder(self, index: int) -> Path:
        return self.runs / "stages" / self.key(index)[:32]

    def _locked(self, index: int) -> bool:
        path = self._folder(index).with_suffix(".lock")
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._lock = file
        return True

    def _keep(self, index: int, done: int) -> None:
        target = self._folder(index)
        found = checkpoints.newest(self.run / "checkpoints")
        if target.exists() or found is None:
            return
        state = found.state
        if (state["stage"], state["position"]["iteration"]) != (index, done):
            return  # that checkpoint could not be written
        policy = {**state["policy"], "optimizer": None}  # the next stage has one of its own
        partial = target.with_name(f".{target.name}.{self.run.name}.tmp")
        shutil.rmtree(partial, ignore_errors=True)
        try:
            kept = {**state, "policy": policy, "run": self.run.name}
            checkpoints.save(partial, kept, stage=index, done=done, keep=1)
            _copy_reference(self.run / "checkpoints", partial, index)
            shutil.copytree(self.run / "tables", partial / "tables")
            partial.rename(target)
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def _place(self, index: int) -> str:
        """Write the checkpoint and the rows as if this run had got so far itself."""
        source = self._folder(index)
        found = checkpoints.newest(source)
        if found is None:
            shutil.rmtree(source)
            return self.take() or ""
        state = dict(found.state)
        donor = state.pop("run")
        names = [stage.name for stage in self.recipe.stages[: index + 1]]
        reused = [{"stage": name, "run": donor} for name in names]
        state["recipe_hash"] = self.recipe.hash
        state["story"] = {**state["story"], "seconds": 0.0, "reused": reused}
        for table in TABLES:
            _copy_rows(source / "tables" / table, self.run / "tables" / table, self.run.name)
        _copy_reference(source, self.run / "checkpoints", index)
        done = state["position"]["iteration"]
        checkpoints.save(self.run / "checkpoints", state, stage=index, done=done, keep=1)
        return names[-1]


def _copy_reference(source: Path, target: Path, index: int) -> None:
    """The policy as the stage began, where its algorithm compares with it."""
    for path in source.glob(f"reference-{index}.*"):
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target / path.name)


def _copy_rows(source: Path, target: Path, run: str) -> None:
    """The parts of a table under their own names, with the rows under the new run's."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = manifest.read(source)
    for path in map(Path, manifest.current(source)):
        whole, start = pq.read_table(path), 0
        names = pa.array([run] * whole.num_rows, whole.schema.field("run").type)
        whole = whole.set_column(whole.schema.get_field_index("run"), "run", names)
        for part, rows in made.get(path.name, [(path.name, whole.num_rows)]):
            compaction.place(whole.slice(start, rows), target / part)
            start += rows


def _machine() -> str:
    """What of the machine decides how numbers are rounded."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "")
    return f"{platform.machine()} {model}"
