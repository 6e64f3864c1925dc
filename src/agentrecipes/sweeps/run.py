"""A study from its file to its outcome."""

from __future__ import annotations

import fcntl
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentrecipes.errors import AgentRecipesError
from agentrecipes.recipe.lock import file_hash
from agentrecipes.sweeps.conduct import Conductor
from agentrecipes.sweeps.load import Sweep
from agentrecipes.sweeps.outcome import outcome
from agentrecipes.sweeps.page import page
from agentrecipes.sweeps.places import Places
from agentrecipes.sweeps.pool import Pool
from agentrecipes.sweeps.study import Study
from agentrecipes.sweeps.trials import Live
from agentrecipes.tracking.opening import tracker
from agentrecipes.tracking.protocol import RunInfo, Status, Tracker, Within
from agentrecipes.tracking.replacing import write
from agentrecipes.training.story import as_json


@dataclass(frozen=True, slots=True)
class Order:
    """How a study is carried out: ``Order(Path("runs"), workers=2)``."""

    runs: Path
    workers: int = 1
    parts: Path | None = None
    say: Callable[[str], None] = print


def run(sweep: Sweep, order: Order) -> dict[str, Any]:
    """Carry a study on until it has its trials; what it has come to, also in ``study.json``.

    Raises:
        AgentRecipesError: the study runs already, its storage went away, or trials only fail.
    """
    runs = order.runs.resolve()
    runs.mkdir(parents=True, exist_ok=True)
    places = Places(runs, sweep.name, parts=order.parts and order.parts.resolve())
    with _alone(places.folder / "lock", sweep.name):
        study = Study(sweep, storage(sweep, runs), workers=order.workers)
        token = study.noted("token") or secrets.token_hex(3)
        study.note("token", token)
        write(places.folder / "sweep.yaml", sweep.file.read_bytes())
        shown = _tracked(sweep, replace(places, token=token))
        places = replace(places, token=token, parent=shown.run_id)
        conductor = Conductor(study, places, Pool(order.workers, places.folder), say=order.say)
        conductor.on_end = lambda live, _: _show(shown, live)
        ended: Status = "failed"
        try:
            ended = "finished" if conductor.go() else "interrupted"
            return _written(study, places, ended, shown)
        finally:
            shown.finish(ended)


def _written(study: Study, places: Places, ended: Status, shown: Tracker) -> dict[str, Any]:
    """What the study has come to, as data and as a page, here and in MLflow."""
    told = {**outcome(study.sweep, study.trials()), "status": ended, "dir": str(places.folder)}
    told["mlflow_run_id"] = places.parent
    told["importances"] = [
        study.importances(index) for index in range(len(study.sweep.fields.objective))
    ]
    html = page(told, study.sweep.space, told["importances"])
    for name, data in (("study.json", as_json(told)), ("study.html", html.encode())):
        write(places.folder / name, data)
        shown.artifact(places.folder / name)
    return told


def storage(sweep: Sweep, runs: Path) -> str:
    """The address of the study's storage."""
    return sweep.fields.storage or f"sqlite:///{runs}/sweeps.db"


@contextmanager
def _alone(path: Path, name: str) -> Iterator[None]:
    """Hold the study's lock, which ends with this process."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"the study {name!r} is running already. Use --workers for more at once"
            raise AgentRecipesError(message) from None
        yield


def _tracked(sweep: Sweep, places: Places) -> Tracker:
    """MLflow's run of the study, in which its trials are nested."""
    recipe = sweep.recipe
    shown = tracker(recipe.fields.tracking, places.runs)
    file = places.folder / "sweep.yaml"
    fields = sweep.fields
    shown.start(
        RunInfo(
            run=f"{sweep.name}-{places.token}",
            experiment=recipe.fields.tracking.experiment or recipe.name,
            recipe={
                "recipe": fields.recipe,
                "space": sweep.space.as_dict(),
                "objective": [objective.dump() for objective in fields.objective],
                "sampler": fields.sampler.dump(),
                "pruner": fields.pruner.dump(),
            },
            recipe_file=file,
            recipe_hash=recipe.hash,
            seed=recipe.seed,
            lock_hash=file_hash(file),
            within=Within(None, {"study": sweep.name}),
        )
    )
    return shown


def _show(shown: Tracker, live: Live) -> None:
    """A trial's values on the study's own curve; nothing of one that has none."""
    if live.results:
        names = ("study/value", "study/second_value", "study/third_value")
        shown.metrics(dict(zip(names, live.means(), strict=False)), live.number)
