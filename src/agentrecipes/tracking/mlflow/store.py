"""One MLflow run, written through MLflow's clients at once: no queue of theirs, nothing dropped."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from mlflow.entities import (
    Dataset,
    DatasetInput,
    InputTag,
    Metric,
    Param,
    Run,
    RunTag,
    Span,
    TraceInfo,
    TraceLocation,
    TraceState,
)
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.tracing.client import TracingClient
from mlflow.tracking import MlflowClient

METRICS_A_BATCH = 1000  # MLflow's limits
PARAMS_A_BATCH = 100
NAME_LENGTH = 250
PARAM_LENGTH = 6000
TAG_LENGTH = 5000
MILLISECOND = 1_000_000  # nanoseconds
UNUSABLE = re.compile(r"[^\w\-. :/]")  # in names of metrics and parameters


class Store:
    """An open MLflow run. Every method raises when the store does not take what it is given."""

    def __init__(self, start: Mapping[str, Any]) -> None:
        """Open the store and the run named in `start`: the one that is there, else a new one."""
        runs_dir = Path(start["runs_dir"])
        uri = start["uri"] or f"sqlite:///{runs_dir}/mlflow.db"
        runs_dir.mkdir(parents=True, exist_ok=True)
        file = _sqlite_file(uri)
        with _alone(file):
            self._client = MlflowClient(tracking_uri=uri)
            self._tracing = TracingClient(uri)
            self._experiment = self._experiment_id(start["experiment"], uri, runs_dir)
        self._database = file if file is not None and file.is_file() else None
        self._inode = self._database and self._database.stat().st_ino
        self._traces: set[str] = set()
        self._stored: dict[str, set[int]] = {}  # of a run that goes on: metric → steps it has
        run = self._found(start["run"])
        self._again = run is not None
        run = run or self._created(start)
        self.run_id = str(run.info.run_id)
        self._client.update_run(self.run_id, status="RUNNING")
        self._describe(run, start)

    def require(self) -> None:
        """Make sure that the database file is still the one that was opened.

        SQLite goes on writing to a file that was removed, and all of it is lost.

        Raises:
            FileNotFoundError: it was removed or replaced.
        """
        if self._database is None:
            return
        if not self._database.exists() or self._database.stat().st_ino != self._inode:
            raise FileNotFoundError(f"{self._database} was removed or replaced during the run")

    def metrics(self, values: Sequence[Sequence[Any]]) -> None:
        """Write (name, value, step, milliseconds), but no step that a resumed run already has."""
        fresh = [
            Metric(name, value, milliseconds, step)
            for name, value, step, milliseconds in (
                (_name(name), float(value), step, milliseconds)
                for name, value, step, milliseconds in values
            )
            if not self._again or step not in self._steps(name)
        ]
        for start in range(0, len(fresh), METRICS_A_BATCH):
            batch = fresh[start : start + METRICS_A_BATCH]
            self._client.log_batch(self.run_id, metrics=batch)

    def traces(self, traces: Sequence[Mapping[str, Any]]) -> None:
        """Write whole traces, linked to the run."""
        spans = [_span(trace, span) for trace in traces for span in trace["spans"]]
        self._traces |= {f"tr-{trace['id']}" for trace in traces}
        for trace in traces:
            self._tracing.start_trace(self._trace_info(trace))
        self._tracing.log_spans(self._experiment, spans)

    def artifact(self, path: str, folder: str) -> None:
        """Copy a file into `folder` of the artifacts, or a folder under its own name."""
        source = Path(path)
        if source.is_dir():
            target = f"{folder}/{source.name}" if folder else source.name
            self._client.log_artifacts(self.run_id, path, target)
        else:
            self._client.log_artifact(self.run_id, path, folder or None)

    def register(self, folder: str, *, name: str, alias: str) -> None:
        """Make the folder of the artifacts a version of the model `name`, and give it the alias.

        A run that goes on has one version, however often it ends.
        """
        with suppress(MlflowException):  # it is there already
            self._client.create_registered_model(name)
        own = f"run_id = '{self.run_id}' and name = '{name}'"
        found = self._client.search_model_versions(own, max_results=1)
        version = found[0] if found else self._version(folder, name)
        self._client.set_registered_model_alias(name, alias, str(version.version))

    def _version(self, folder: str, name: str) -> ModelVersion:
        place = f"{self._client.get_run(self.run_id).info.artifact_uri}/{folder}"
        return self._client.create_model_version(name, place, run_id=self.run_id)

    def finish(self, status: str, ended: str) -> str | None:
        """Close the run; say which traces are missing in the store, if any."""
        self._client.set_tag(self.run_id, "status", ended)
        missing = self._missing_traces()
        self._client.set_terminated(self.run_id, status)
        if not missing:
            return None
        return f"{len(missing)} of {len(self._traces)} traces are missing or incomplete"

    def _missing_traces(self) -> set[str]:
        found: set[str] = set()
        token: str | None = None
        while self._traces:
            page = self._client.search_traces(
                locations=[self._experiment],
                run_id=self.run_id,
                max_results=500,
                page_token=token,
                include_spans=False,
            )
            found |= {one.info.trace_id for one in page if one.info.state != TraceState.IN_PROGRESS}
            token = page.token
            if not token:
                break
        return self._traces - found

    def _experiment_id(self, name: str, uri: str, runs_dir: Path) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is not None:
            return str(found.experiment_id)
        # A server decides itself where artifacts go; for a database nobody else would.
        served = uri.startswith(("http:", "https:", "databricks"))
        place = runs_dir / "mlartifacts" / UNUSABLE.sub("_", name)
        location = None if served else place.as_uri()
        try:
            return str(self._client.create_experiment(name, artifact_location=location))
        except MlflowException:
            found = self._client.get_experiment_by_name(name)  # another run was faster
            if found is None:
                raise
            return str(found.experiment_id)

    def _found(self, run: str) -> Run | None:
        quoted = run.replace("'", "")
        runs = self._client.search_runs([self._experiment], f"tags.run = '{quoted}'", max_results=1)
        return runs[0] if runs else None

    def _created(self, start: Mapping[str, Any]) -> Run:
        nested = {"mlflow.parentRunId": start["parent"]} if start["parent"] else {}
        tags = {"run": start["run"], **nested}
        return self._client.create_run(self._experiment, run_name=start["run"], tags=tags)

    def _describe(self, run: Run, start: Mapping[str, Any]) -> None:
        """Write what `run` lacks: it may be new, or one that goes on, or one half described."""
        tags = [RunTag(_name(key), value[:TAG_LENGTH]) for key, value in start["tags"].items()]
        self._client.log_batch(self.run_id, tags=tags)
        params = [
            Param(_name(key), _cut(value, PARAM_LENGTH)) for key, value in start["params"].items()
        ]
        missing = [param for param in params if param.key not in run.data.params]
        for first in range(0, len(missing), PARAMS_A_BATCH):
            batch = missing[first : first + PARAMS_A_BATCH]
            self._client.log_batch(self.run_id, params=batch)
        if start["datasets"] and not (run.inputs and run.inputs.dataset_inputs):
            inputs = [_dataset(data) for data in start["datasets"]]
            self._client.log_inputs(self.run_id, datasets=inputs)
        if os.path.exists(start["recipe_file"]):
            self._client.log_artifact(self.run_id, start["recipe_file"])

    def _steps(self, name: str) -> set[int]:
        if name not in self._stored:
            history = self._client.get_metric_history(self.run_id, name)
            self._stored[name] = {metric.step for metric in history}
        return self._stored[name]

    def _trace_info(self, trace: Mapping[str, Any]) -> TraceInfo:
        return TraceInfo(
            trace_id=f"tr-{trace['id']}",
            trace_location=TraceLocation.from_experiment_id(self._experiment),
            request_time=trace["start"] // MILLISECOND,
            execution_duration=(trace["end"] - trace["start"]) // MILLISECOND,
            state=TraceState.ERROR if trace["failed"] else TraceState.OK,
            request_preview=trace["question"],
            response_preview=trace["answer"],
            trace_metadata={"mlflow.sourceRun": self.run_id, "mlflow.trace_schema.version": "3"},
            tags={"mlflow.traceName": trace["spans"][0]["name"], **trace["tags"]},
        )


def _span(trace: Mapping[str, Any], span: Mapping[str, Any]) -> Span:
    attributes = {
        "mlflow.traceRequestId": f"tr-{trace['id']}",
        "mlflow.spanType": span["type"],
        "mlflow.spanInputs": span["inputs"],
        "mlflow.spanOutputs": span["outputs"],
    }
    return Span.from_dict(
        {
            "trace_id": _base64(trace["id"]),
            "span_id": _base64(span["id"]),
            "parent_span_id": _base64(span["parent"]) if span["parent"] else None,
            "name": span["name"],
            "start_time_unix_nano": span["start"],
            "end_time_unix_nano": span["end"],
            "events": [],
            "links": [],
            "status": {"code": "STATUS_CODE_ERROR" if span["failed"] else "STATUS_CODE_OK"},
            "attributes": {key: json.dumps(value) for key, value in attributes.items()},
        }
    )


def _dataset(data: Mapping[str, Any]) -> DatasetInput:
    profile = json.dumps({"split": data["split"], "tasks": data["tasks"]})
    dataset = Dataset(
        name=data["name"],
        digest=data["digest"][:36],
        source_type="agentrecipes",
        source=data["source"],
        profile=profile,
    )
    return DatasetInput(dataset, tags=[InputTag("mlflow.data.context", data["split"])])


@contextmanager
def _alone(database: Path | None) -> Iterator[None]:
    """One process at a time: MLflow makes a new database in steps that two of them must not mix."""
    if database is None:
        yield
        return
    database.parent.mkdir(parents=True, exist_ok=True)
    with database.with_name(f".{database.name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sqlite_file(uri: str) -> Path | None:
    """The file of a SQLite store, there or not; None for every other store."""
    parts = urlsplit(uri)
    path = Path(unquote(parts.path).removeprefix("/"))
    return path if parts.scheme.startswith("sqlite") and path.name else None


def _name(text: str) -> str:
    return UNUSABLE.sub("_", text)[:NAME_LENGTH] or "_"


def _cut(value: str, most: int) -> str:
    return value if len(value) <= most else f"{value[: most - 1]}…"


def _base64(hexadecimal: str) -> str:
    return base64.b64encode(bytes.fromhex(hexadecimal)).decode()
