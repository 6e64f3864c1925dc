"""The study in its storage: the one place that Optuna is asked from.

Every call goes through `Study.reach`, so that a database that went away is one kind of error, after
some patience, and never half a sweep.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import optuna
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import SQLAlchemyError

from agentrecipes.errors import Problem, RecipeError
from agentrecipes.numerics.streams import derive
from agentrecipes.sweeps import samplers
from agentrecipes.sweeps.load import Sweep
from agentrecipes.sweeps.space import Entry, label
from agentrecipes.sweeps.storage import (
    StorageLost,
    file_of,
    lost,
    opened,
    quiet,
    without_password,
)

PAUSES = (0.2, 1.0, 3.0)  # seconds before a call that failed is tried again
IDENTITY = "agentrecipes"
OVER = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)

Result = TypeVar("Result")


class Study:
    """An open study. Values and curves in, decisions out."""

    def __init__(self, sweep: Sweep, url: str, *, workers: int = 1) -> None:
        """Open the study, or make it where there is none.

        Raises:
            RecipeError: the study in the storage has another recipe, space or objective.
            StorageLost: the storage cannot be opened.
            MissingExtra: its driver is not installed.
        """
        self.sweep = sweep
        self.url = url
        self._shown = without_password(url)
        self._workers = workers
        self._file: Path | None = None
        self._inode: int | None = None
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        with quiet():
            self._storage = opened(url, self._shown)
            self._study = self._first(lambda: self._load())
        self._file = file_of(url)
        self._inode = self._file.stat().st_ino if self._file else None
        self._require_same()

    def _load(self) -> optuna.Study:
        return optuna.create_study(
            storage=self._storage,
            study_name=self.sweep.name,
            load_if_exists=True,
            directions=[objective.direction for objective in self.sweep.fields.objective],
            sampler=optuna.samplers.RandomSampler(seed=0),  # each trial gets its own, in `ask`
            pruner=samplers.pruner(self.sweep),
        )

    # What the study remembers beside its trials.

    def note(self, key: str, value: Any) -> None:
        """Remember a plain value with the study."""
        self.reach(lambda: self._study.set_user_attr(key, value))

    def noted(self, key: str, default: Any = None) -> Any:
        """What was noted under `key`."""
        return self.reach(lambda: self._study.user_attrs).get(key, default)

    def _require_same(self) -> None:
        mine, theirs = self.sweep.identity(), self.noted(IDENTITY)
        if theirs is None:
            self.note(IDENTITY, mine)
            for point in (
                self.sweep.space.grid() if self.sweep.fields.sampler.name == "grid" else ()
            ):
                fixed = {path: label(value) for path, value in point.items()}
                self.reach(partial(self._study.enqueue_trial, fixed))
            return
        if different := list(differences(theirs, mine)):
            raise RecipeError(
                [
                    Problem("another_study", path, text, file=str(self.sweep.file))
                    for path, text in different
                ]
                + [
                    Problem(
                        "another_study",
                        "study",
                        f"the study {self.sweep.name!r} in {self._shown} was begun otherwise",
                        "Give this one another name with `study: NAME`, or write what it was.",
                        file=str(self.sweep.file),
                    )
                ]
            )

    # Trials.

    def trials(self) -> list[FrozenTrial]:
        """All trials, in their order."""
        found: list[FrozenTrial] = self.reach(lambda: self._study.get_trials(deepcopy=False))
        return [trial for trial in found if trial.state != TrialState.WAITING]

    def ask(self) -> Trial:
        """A new trial, without values yet."""
        with quiet():
            return self.reach(lambda: self._study.ask())

    def again(self, number: int) -> Trial:
        """A trial that was begun, to go on with."""
        frozen = next(trial for trial in self.trials() if trial.number == number)
        return self.reach(lambda: Trial(self._study, frozen._trial_id))

    def values(self, trial: Trial) -> dict[str, Any]:
        """The trial's value for each path: those it has, and new ones for the rest."""
        seed = derive(self.sweep.fields.sampler.seed, "sampler", trial.number) % 2**31
        with quiet():
            self._study.sampler = samplers.sampler(self.sweep, seed, workers=self._workers)

            def ask(entry: Entry) -> Any:
                return self.reach(lambda: _suggested(trial, entry))

            return self.sweep.space.assign(ask)

    def report(self, trial: Trial, step: int, value: float) -> bool:
        """Add a point to the trial's curve; whether the trial should end here."""

        def reported() -> bool:
            with quiet():
                trial.report(value, step)
                return bool(trial.should_prune())

        return self.reach(reported)

    def keep(self, trial: Trial, **facts: Any) -> None:
        """Remember plain values with a trial."""
        for key, value in facts.items():
            self.reach(partial(trial.set_user_attr, key, value))

    def tell(self, trial: Trial, values: Sequence[float] | None, state: TrialState) -> None:
        """End a trial; one that is over already stays as it is."""

        def told() -> None:
            with quiet():
                self._study.tell(trial, values, state=state, skip_if_finished=True)

        self.reach(told)

    def alive(self, trials: Sequence[Trial]) -> None:
        """A sign of life for trials that are running."""
        for trial in trials:
            self.reach(partial(self._storage.record_heartbeat, trial._trial_id))

    def silent(self) -> set[int]:
        """Numbers of running trials that gave no sign of life for too long."""
        study_id = self._study._study_id
        ids = set(self.reach(lambda: self._storage._get_stale_trial_ids(study_id)))
        return {trial.number for trial in self.trials() if trial._trial_id in ids}

    def importances(self, objective: int = 0) -> dict[str, float]:
        """Path → its share in how much the trials' values differ; empty for fewer than two trials.

        Paths that only some trials ask for are left out. Hutter et al. 2014 (functional ANOVA,
        https://proceedings.mlr.press/v32/hutter14.html), as Optuna computes it.
        """
        done = [trial for trial in self.trials() if trial.state == TrialState.COMPLETE]
        values = {trial.values[objective] for trial in done}
        if len(values) < 2:
            return {}
        with quiet():
            found = optuna.importance.get_param_importances(
                self._study,
                evaluator=optuna.importance.FanovaImportanceEvaluator(seed=0),
                target=lambda trial: float(trial.values[objective]),
            )
        return {path: float(share) for path, share in found.items()}

    # The storage.

    def reach(self, call: Callable[[], Result]) -> Result:
        """The result of a call to the storage, tried again after pauses.

        Raises:
            StorageLost: it still failed, or the database's file is not the one that was opened.
        """
        for pause in (*PAUSES, None):
            self._require_file()
            try:
                return call()
            except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
                if pause is None:
                    raise StorageLost(lost(self._shown, error)) from None
                time.sleep(pause)
        raise AssertionError  # the last pause is None

    def _first(self, call: Callable[[], Result]) -> Result:
        try:
            return call()
        except (SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
            raise StorageLost(lost(self._shown, error)) from None

    def _require_file(self) -> None:
        """SQLite goes on writing to a file that was removed, and all of it is lost."""
        if self._file is None:
            return
        if not self._file.exists() or self._file.stat().st_ino != self._inode:
            raise StorageLost(f"{self._shown}: the file was removed or replaced during the sweep")


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Path and what was there and is there now, for all that differs between two identities."""
    for part in ("recipe", "space"):
        one, two = old.get(part, {}), new.get(part, {})
        for path in sorted({*one, *two}):
            if one.get(path) != two.get(path):
                where = path if part == "recipe" else f"space.{path}"
                yield where, f"was {_said(one, path)}, and is {_said(two, path)}"
    if old.get("objective") != new.get("objective"):
        yield "objective", f"was {old.get('objective')}, and is {new.get('objective')}"


def _said(data: Mapping[str, Any], path: str) -> str:
    return str(data[path]) if path in data else "not there"


def _suggested(trial: Trial, entry: Entry) -> Any:
    """What Optuna says, as the recipe wants it."""
    if entry.kind == "choice":
        by_label = {label(value): value for value in entry.choices}
        return by_label[trial.suggest_categorical(entry.path, list(by_label))]
    if entry.kind == "int":
        step = int(entry.step or 1)
        low, high = int(entry.low), int(entry.high)
        return trial.suggest_int(entry.path, low, high, step=step, log=entry.log)
    return trial.suggest_float(entry.path, entry.low, entry.high, step=entry.step, log=entry.log)
