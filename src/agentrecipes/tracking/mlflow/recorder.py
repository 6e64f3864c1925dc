"""MLflow's process: reads messages from its input, carries them out, says what was done or lost.

Run by ``tracker.py`` as ``python -m agentrecipes.tracking.mlflow.recorder``. When its input ends
without a goodbye the training process is gone, and the run is marked KILLED.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agentrecipes.tracking.mlflow.store import Store

PAUSES = (0.5, 1.0, 2.0)  # seconds before an operation that failed is tried again
PASSWORD = re.compile(r"(?<=//)[^/@\s]+(?=@)")


class Recorder:
    """Carries out messages in their order; a failure is an answer, never the end."""

    def __init__(self, answers: IO[str]) -> None:
        self._answers = answers
        self._store: Store | None = None
        self._failing = False  # the last message failed: the next is tried once only
        self._ended = False
        self._start: Mapping[str, Any] | None = None

    def handle(self, message: Mapping[str, Any]) -> None:
        """Carry out one message and answer it."""
        error = self._attempt(message)
        answer: dict[str, Any] = {"done": message["number"]}
        if message["do"] == "start" and self._store is not None:
            answer["run_id"] = self._store.run_id
        if error is not None:
            answer["lost"] = f"{_named(message)} not stored: {error}"
        self._say(answer)

    def abandoned(self) -> None:
        """The training process has gone without a goodbye."""
        if self._store is not None and not self._ended:
            self._attempt({"do": "finish", "status": "KILLED", "ended": "killed"})

    def _attempt(self, message: Mapping[str, Any]) -> str | None:
        for pause in (*(() if self._failing else PAUSES), None):
            # The boundary to a server or a database: whatever it raises is told to the user.
            try:
                self._do(message)
            except Exception as error:
                if pause is None:
                    self._failing = True
                    return _reason(error)
                time.sleep(pause)
            else:
                self._failing = False
                break
        return None

    def _do(self, message: Mapping[str, Any]) -> None:
        match message["do"]:
            case "start":
                self._start = message
                self._opened()
            case "metrics":
                self._opened().metrics(message["values"])
            case "traces":
                self._opened().traces(message["traces"])
            case "artifact":
                self._opened().artifact(message["path"], message["folder"])
            case "register":
                named = {key: message[key] for key in ("name", "alias")}
                self._opened().register(message["folder"], **named)
            case "finish":
                self._ended = True
                if missing := self._opened().finish(message["status"], message["ended"]):
                    self._say({"lost": missing})

    def _opened(self) -> Store:
        """The store; opened again with every message until it succeeds."""
        if self._store is None:
            from agentrecipes.tracking.mlflow.store import Store

            assert self._start is not None
            self._store = Store(self._start)
            self._say({"run_id": self._store.run_id})
        self._store.require()
        return self._store

    def _say(self, answer: Mapping[str, Any]) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()


def _named(message: Mapping[str, Any]) -> str:
    match message["do"]:
        case "start":
            return "the run, its parameters and tags"
        case "metrics":
            return f"{len(message['values'])} metric values"
        case "traces":
            return f"{len(message['traces'])} traces"
        case "artifact":
            return f"artifact {message['path']}"
        case "register":
            return f"model {message['name']}@{message['alias']}"
    return "the end of the run"


def _reason(error: Exception) -> str:
    """One line without the password of a store's address."""
    text = " ".join(str(error).split())[:300] or "no reason given"
    return f"{type(error).__name__}: {PASSWORD.sub('***', text)}"


def main() -> None:
    """Serve the messages on standard input; answers go to what was standard output."""
    os.nice(5)  # training comes first
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not look like an answer
    recorder = Recorder(answers)
    for line in sys.stdin.buffer:
        recorder.handle(json.loads(line))
    recorder.abandoned()
    answers.flush()
    os._exit(0)  # all is stored; MLflow's own farewell takes a second


if __name__ == "__main__":
    main()
