"""The training process's side of MLflow: it hands everything to a process of its own and goes on.

MLflow itself (two seconds of imports, a database to create, a server that may hang) lives in
``recorder.py``'s process, so that training does not wait for it and outlives its failures.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import agentrecipes
from agentrecipes.records import Place, Scored
from agentrecipes.tracking.mlflow import spans
from agentrecipes.tracking.mlflow.mailbox import Mailbox
from agentrecipes.tracking.paths import flatten
from agentrecipes.tracking.protocol import RunInfo, Status

RECORDER = "agentrecipes.tracking.mlflow.recorder"
TRACES = 50  # in one message, so that a failure loses few of them
BATCH = 500  # metric values gathered before they are sent
EVERY_SECONDS = 5.0  # ... or so long after the last were sent
ILL_SECONDS = 5.0  # waited at the end for a store whose last answer was a failure
COPY_BYTES_PER_SECOND = 20e6  # what an artifact may take on top of the patience
STATUS = {"finished": "FINISHED", "stopped": "FAILED", "failed": "FAILED", "interrupted": "KILLED"}


class MlflowTracker:
    """One MLflow run. Nothing raises for trouble with the store, or waits beyond the patience."""

    def __init__(
        self,
        runs_dir: Path,
        *,
        uri: str | None = None,
        traces: int | None = 6,
        registered_as: str | None = None,
        patience_seconds: float = 30.0,
    ) -> None:
        """`uri` None is ``mlflow.db`` in `runs_dir`; each `trace` keeps `traces`, None for all.

        `registered_as` is the registered model's name and its alias, ``searcher@best``.
        """
        self.lost: list[str] = []
        self._runs_dir = runs_dir.resolve()
        self._uri = uri
        self._traces = traces
        self._registered_as = registered_as
        self._patience = patience_seconds
        self._mailbox: Mailbox | None = None
        self._buffer: list[tuple[str, float, int, int]] = []  # name, value, step, ms
        self._sent = time.monotonic()
        self._copying = 0.0  # seconds that the artifacts under way may take
        self._run = ""
        self._started = 0.0
        self._well = True  # the last answer was not a failure
        self._run_id: str | None = None
        self._refused = 0

    @property
    def run_id(self) -> str | None:
        """MLflow's id of the run, waited for until the patience after the start is over."""
        deadline = self._started + self._patience
        while self._run_id is None and self._mailbox and time.monotonic() < deadline:
            if self._mailbox.wait(0.05):
                break
        return self._run_id

    def start(self, info: RunInfo) -> None:
        """Start MLflow's process and tell it about the run; takes milliseconds."""
        self._run, self._started = info.run, time.monotonic()
        try:
            self._mailbox = Mailbox(RECORDER, environment(), answered=self._answer)
        except OSError as error:
            self.lost.append(f"mlflow: its process cannot be started: {error}")
            return
        message = {
            "do": "start",
            "uri": self._uri,
            "runs_dir": str(self._runs_dir),
            "run": info.run,
            "experiment": info.experiment,
            "params": flatten(info.recipe),
            "tags": _tags(info),
            "parent": info.within.parent,
            "datasets": [asdict(data) for data in info.datasets],
            "recipe_file": str(info.recipe_file.resolve()),
        }
        self._put(message, "the run, its parameters and tags")

    def metrics(self, values: Mapping[str, float], step: int) -> None:
        """Add one step's values; they are sent in batches."""
        now = round(time.time() * 1000)
        self._buffer += [(name, float(value), step, now) for name, value in values.items()]
        if len(self._buffer) >= BATCH or time.monotonic() - self._sent >= EVERY_SECONDS:
            self._send_metrics()

    def trace(self, scored: Sequence[Scored], place: Place) -> None:
        """Store the first trajectories as traces, one a task before second attempts."""
        order = sorted(
            range(len(scored)), key=lambda index: (scored[index].trajectory.attempt, index)
        )
        chosen, end = [scored[index] for index in order[: self._traces]], time.time_ns()
        for start in range(0, len(chosen), TRACES):
            part = chosen[start : start + TRACES]
            traces = [spans.trace(one, place, run=self._run, end=end) for one in part]
            where = f"{place.stage} {place.iteration} {place.split} {place.mode}"
            self._put({"do": "traces", "traces": traces}, f"{len(traces)} traces of {where}")

    def artifact(self, path: Path, folder: str = "") -> None:
        """Copy a file or a folder into the run's artifacts, later: it must stay where it is."""
        try:
            self._copying += _bytes(path) / COPY_BYTES_PER_SECOND
        except OSError as error:
            self.lost.append(f"mlflow: artifact {path}: {error}")
            return
        message = {"do": "artifact", "path": str(path.resolve()), "folder": folder}
        self._put(message, f"artifact {path}")

    def model(self, path: Path) -> None:
        """Copy the model's folder into the artifacts, and register it where that was asked for."""
        self.artifact(path)
        if self._registered_as is not None:
            name, _, alias = self._registered_as.rpartition("@")
            message = {"do": "register", "folder": path.name, "name": name, "alias": alias}
            self._put(message, f"model {self._registered_as}")

    def flush(self) -> None:
        """Wait until all so far is stored or lost, within the patience."""
        self._send_metrics()
        if self._mailbox and self._mailbox.wait(self._limit()):
            self._copying = 0.0

    def finish(self, status: Status) -> None:
        """Store the rest, count the traces, close the run, and end MLflow's process."""
        self._send_metrics()
        self._put(
            {"do": "finish", "status": STATUS[status], "ended": status},
            f"the end of the run ({status})",
        )
        mailbox, self._mailbox = self._mailbox, None
        if mailbox is None:
            return
        if not mailbox.wait(self._limit()):
            late = mailbox.unanswered()
            reason = mailbox.last_words() or f"no answer within {self._patience:g} s"
            self.lost += [f"mlflow: {what} not stored: {reason}" for what in late[:5]]
            if len(late) > 5:
                self.lost.append(f"mlflow: {len(late) - 5} more messages not stored: {reason}")
            mailbox.close(0.0)
        else:
            mailbox.close(5.0)
        if self._refused:
            self.lost.append(
                f"mlflow: {self._refused} messages not sent after its process had ended"
            )

    def _send_metrics(self) -> None:
        self._sent = time.monotonic()
        values, self._buffer = self._buffer, []
        if values:
            first, last = values[0][2], values[-1][2]
            message = {"do": "metrics", "values": values}
            self._put(message, f"{len(values)} metric values of steps {first} to {last}")

    def _put(self, message: Mapping[str, Any], what: str) -> None:
        if self._mailbox is None or not self._mailbox.put(message, what):
            self._refused += 1

    def _limit(self) -> float:
        """Seconds to wait for the store: the patience, and little when it is known to be ill."""
        silent = self._run_id is None and time.monotonic() - self._started > self._patience
        well = self._well and not silent
        return self._patience + self._copying if well else min(ILL_SECONDS, self._patience)

    def _answer(self, answer: dict[str, Any]) -> None:
        self._well = "lost" not in answer
        if "run_id" in answer:
            self._run_id = answer["run_id"]
        if "lost" in answer:
            self.lost.append(f"mlflow: {answer['lost']}")


def environment() -> dict[str, str]:
    """The recorder's environment: no telemetry, traces at once, short waits for servers."""
    source = str(Path(agentrecipes.__file__).parents[1])
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    return {
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
        "OMP_NUM_THREADS": "1",
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*known, source]),
        "PYTHONWARNINGS": "ignore",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "MLFLOW_ENABLE_ASYNC_TRACE_LOGGING": "false",
        "MLFLOW_ENABLE_ASYNC_LOGGING": "false",
        "GIT_PYTHON_REFRESH": "quiet",
    }


def _tags(info: RunInfo) -> dict[str, str]:
    tags = {
        "run": info.run,
        "recipe_hash": info.recipe_hash,
        "seed": str(info.seed),
        "profile": info.profile or "",
        "git": info.git,
        "lock": info.lock_hash,
        **info.within.tags,
    }
    return {key: value for key, value in tags.items() if value}


def _bytes(path: Path) -> float:
    if path.is_dir():
        return math.fsum(item.stat().st_size for item in path.rglob("*") if item.is_file())
    return path.stat().st_size
