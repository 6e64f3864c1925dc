"""Studies without training: workers that answer at once with what a formula says."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentrecipes.sweeps.conduct import Conductor
from agentrecipes.sweeps.load import Sweep, load
from agentrecipes.sweeps.places import Places
from agentrecipes.sweeps.pool import Said
from agentrecipes.sweeps.study import Study

RECIPE = Path(__file__).parents[2] / "recipes" / "rag_r1.yaml"
HEAD = f"recipe: {RECIPE}\nset: {{stages.reinforce.iterations: 30}}\n"
RATE = "stages.reinforce.optimizer.learning_rate"
SPACE = f"space:\n  {RATE}: {{float: [1e-4, 1e-2], log: true}}\n"
OBJECTIVE = "objective: {metric: exact_match}\n"

Formula = Callable[[Mapping[str, float], int, int], float]
"""(values of the trial, its seed, iteration) → the evaluation."""


def written(folder: Path, text: str) -> Path:
    path = folder / "study.yaml"
    path.write_text(HEAD + text)
    return path


def sweep_of(folder: Path, text: str) -> Sweep:
    return load(written(folder, text))


def row(iteration: int, value: float, **more: Any) -> dict[str, Any]:
    """An evaluation of the recipe's last stage."""
    where = {"stage": "reinforce", "iteration": iteration, "split": "dev", "mode": "sampled"}
    return {**where, "metric": "exact_match", "value": value, "rounds_mean": 2.0, **more}


class Workers:
    """A pool whose runs are a formula: an evaluation at 0, 10, 20 and 30, then the summary.

    A trial whose number is in `kills` loses its process that many times first; those in `fails`
    fail.
    """

    def __init__(
        self,
        formula: Formula,
        *,
        count: int = 1,
        kills: Mapping[int, int] | None = None,
        fails: frozenset[int] = frozenset(),
    ) -> None:
        self.numbers = range(count)
        self.formula = formula
        self.fails = fails
        self.kills = dict(kills or {})
        self.jobs: list[dict[str, Any]] = []
        self.rows = 0  # evaluations that were told
        self._said: list[Said] = []
        self._job: dict[int, tuple[dict[str, Any], int]] = {}

    def send(self, worker: int, message: Mapping[str, Any]) -> None:
        if message["do"] == "run":
            self.jobs.append(dict(message))
            self._begin(worker, dict(message))
        elif message["do"] == "answer":
            job, iteration = self._job[worker]
            if not message["go"]:
                self._say(worker, {"do": "done", "status": "pruned", "reason": ""})
            elif iteration == 30:
                self._finish(worker, job)
            else:
                self._evaluate(worker, job, iteration + 10)

    def hear(self, seconds: float) -> Said | None:
        return self._said.pop(0) if self._said else None

    def forget(self, worker: int) -> int:
        return -9

    def stop(self) -> None:
        """Nothing is under way between two calls."""

    def close(self) -> None:
        """No process to end."""

    def _begin(self, worker: int, job: dict[str, Any]) -> None:
        number = int(job["tags"]["trial"])
        if self.kills.get(number, 0) > 0:
            self.kills[number] -= 1
            self._say(worker, {"do": "gone"})
        elif number in self.fails:
            self._say(worker, {"do": "done", "status": "failed", "reason": "it broke"})
        else:
            self._evaluate(worker, job, 0)

    def _evaluate(self, worker: int, job: dict[str, Any], iteration: int) -> None:
        self._job[worker] = (job, iteration)
        self.rows += 1
        self._say(worker, {"do": "evaluation", "row": row(iteration, self._at(job, iteration))})

    def _finish(self, worker: int, job: dict[str, Any]) -> None:
        rows = [row(iteration, self._at(job, iteration)) for iteration in (0, 10, 20, 30)]
        rows.append(row(30, -1.0, split="test"))  # which no objective may look at
        folder = Path(job["folder"])
        folder.mkdir(parents=True, exist_ok=True)
        told = {"status": "finished", "evaluations": rows, "seed": seed_of(job)}
        (folder / "summary.json").write_text(json.dumps(told))
        self._say(worker, {"do": "done", "status": "finished", "reason": ""})

    def _at(self, job: Mapping[str, Any], iteration: int) -> float:
        pairs = (text.split("=", 1) for text in job["overrides"])
        values = {path: json.loads(value) for path, value in pairs}
        return self.formula(values, seed_of(job), iteration)

    def _say(self, worker: int, message: dict[str, Any]) -> None:
        self._said.append(Said(worker, message))


def seed_of(job: Mapping[str, Any]) -> int:
    return int(job["overrides"][-1].removeprefix("seed="))


def conducted(
    sweep: Sweep,
    folder: Path,
    workers: Workers,
    *,
    say: Callable[[str], None] = print,
    url: str | None = None,
) -> Study:
    """The study in `url`, or in ``folder/sweeps.db``, when the workers have done what it wants."""
    url = url or f"sqlite:///{folder}/sweeps.db"
    study = Study(sweep, url, workers=len(workers.numbers))
    Conductor(study, Places(folder, sweep.name, "aaaaaa"), workers, say=say).go()
    return study
