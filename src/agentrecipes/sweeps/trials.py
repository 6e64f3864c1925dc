"""The trials of a study: which one is next, and what its runs have come to."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Set
from dataclasses import dataclass, replace
from typing import Any

from optuna.trial import FrozenTrial, Trial, TrialState

from agentrecipes.sweeps.curve import reduced, values_of
from agentrecipes.sweeps.places import Places, finished
from agentrecipes.sweeps.processes import born, is_alive
from agentrecipes.sweeps.space import overrides
from agentrecipes.sweeps.study import OVER, Study


@dataclass(frozen=True, slots=True)
class Live:
    """A trial under way: the values it tries, and what the seeds that are done were worth."""

    trial: Trial
    values: dict[str, Any]
    results: tuple[tuple[float, ...], ...] = ()  # of each seed, for each objective
    tries: int = 0  # times that its process was killed

    @property
    def number(self) -> int:
        return self.trial.number

    def means(self) -> list[float]:
        """The trial's values: the means over its seeds."""
        return [sum(each) / len(self.results) for each in zip(*self.results, strict=True)]


class Trials:
    """The study's trials and the folders of their runs."""

    def __init__(self, study: Study, places: Places, say: Callable[[str], None]) -> None:
        self.study = study
        self.sweep = study.sweep
        self.places = places
        self.say = say

    def candidate(self, mine: Set[int]) -> Live | None:
        """The next trial: one that nobody goes on with, else a new one; None where all are begun.

        `mine` are the numbers of those that go on here.
        """
        trials = self.study.trials()
        over = sum(trial.state in OVER for trial in trials)
        running = [trial for trial in trials if trial.state == TrialState.RUNNING]
        left = [trial for trial in running if trial.number not in mine]
        for trial in left:
            if self._is_orphan(trial):
                return self._adopted(trial.number)
        if over + len(running) >= self.target:
            return None
        return self._begun(self.study.ask())

    @property
    def target(self) -> int:
        """Trials that the study wants."""
        points = self.sweep.space.grid() if self.sweep.fields.sampler.name == "grid" else None
        wanted = self.sweep.fields.trials
        if points is None:
            assert wanted is not None  # checked with the file
            return wanted
        return len(points) if wanted is None else min(wanted, len(points))

    def _is_orphan(self, trial: FrozenTrial) -> bool:
        """Whether a running trial is nobody's: its sweep was killed."""
        owner = trial.user_attrs.get("owner")
        if owner is None or owner["host"] == platform.node():
            return owner is None or not is_alive(owner["pid"], owner["born"])
        return trial.number in self.study.silent()

    def _begun(self, trial: Trial) -> Live:
        """A trial with its values and its owner, both remembered in the storage."""
        owner = {"host": platform.node(), "pid": os.getpid(), "born": born(os.getpid())}
        self.study.keep(trial, owner=owner)
        self.study.alive([trial])
        live = Live(trial, self.study.values(trial), tries=trial.user_attrs.get("tries", 0))
        names = [
            self.places.run(live.number, self.sweep.seed(index, live.values)).name
            for index in range(self.sweep.fields.seeds)
        ]
        self.study.keep(trial, runs=names)
        return live

    def _adopted(self, number: int) -> Live:
        """A trial that a killed sweep left behind, with the seeds that it had finished."""
        live = self._begun(self.study.again(number))
        while len(live.results) < self.sweep.fields.seeds:
            result = self.result(live)
            if result is None:
                break
            live = replace(live, results=(*live.results, result))
        if len(live.results) == self.sweep.fields.seeds:  # all but the last word was said
            last = replace(live, results=live.results[:-1])
            self.say(f"trial {number}: was finished")
            return last
        self.say(f"trial {number}: going on")
        return live

    def job(self, live: Live) -> dict[str, Any]:
        """What a worker is told about a trial's next run."""
        seed = self.sweep.seed(len(live.results), live.values)
        folder = self.places.run(live.number, seed)
        fields = self.sweep.fields
        texts = [*self.sweep.given, *overrides(live.values), f"seed={seed}"]
        return {
            "do": "run",
            "recipe": str(self.sweep.source),
            "overrides": texts,
            "profile": fields.profile,
            "parts": self.places.parts and str(self.places.parts),
            "runs": str(self.places.runs),
            "folder": str(folder),
            "lock": str(self.places.folder / "locks" / folder.name),
            "parent": self.places.parent,
            "tags": {"study": self.sweep.name, "trial": str(live.number)},
            "reuse": fields.reuse,
        }

    def result(self, live: Live) -> tuple[float, ...] | None:
        """What the next seed of a trial is worth, where its run is finished."""
        folder = self.places.run(live.number, self.sweep.seed(len(live.results), live.values))
        summary = finished(folder)
        if summary is None:
            return None
        found = [
            reduced(values_of(summary["evaluations"], objective, self.sweep.recipe), objective)
            for objective in self.sweep.fields.objective
        ]
        return None if None in found else tuple(value for value in found if value is not None)
