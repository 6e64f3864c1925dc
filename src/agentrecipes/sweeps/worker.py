"""A worker's process: it trains the runs that it is told to, one after the other.

Run by ``pool.py`` as ``python -m agentrecipes.sweeps.worker``. Jobs come in as lines of JSON, what
happens goes out as lines of JSON. After each evaluation it asks whether to go on. When its input
ends, the sweep is gone: the run under way is saved and left for whoever resumes it.
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, Any

from agentrecipes.components import add_folder
from agentrecipes.errors import AgentRecipesError, RunStopped
from agentrecipes.recipe.load import load
from agentrecipes.sweeps.places import finished
from agentrecipes.tracking.protocol import Within
from agentrecipes.training.signals import StopFlag

PRUNED = "the curve of its trial lies too low"


class Worker:
    """The process while it lives; also the progress watcher of its runs."""

    def __init__(self, messages: IO[bytes], answers: IO[str]) -> None:
        self._messages = messages
        self._answers = answers
        self._queue: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self._stop = StopFlag()
        self._pruned = False
        threading.Thread(target=self._listen, daemon=True).start()

    def serve(self) -> None:
        """Carry out jobs until there are no more."""
        while (job := self._queue.get()) is not None:
            self._say(self._done(job))

    def _listen(self) -> None:
        for line in self._messages:
            message = json.loads(line)
            if message.get("do") == "stop":
                self._stop.asked = True
            else:
                self._queue.put(message)
        self._stop.asked = True
        self._queue.put(None)

    def _done(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """Run one job; what came of it."""
        self._pruned = False
        # The boundary to everything that a run can raise: one trial is never the end of a sweep.
        try:
            summary = self._run(job)
        except Exception as error:
            traceback.print_exc()
            known = isinstance(error, AgentRecipesError)
            reason = str(error) if known else f"{type(error).__name__}: {error}"
            return {"do": "done", "status": "failed", "reason": reason}
        status = "pruned" if self._pruned else summary["status"]
        reasons = [each["message"] for each in summary.get("tripwires", ())]
        return {"do": "done", "status": status, "reason": "; ".join(reasons[-1:])}

    def _run(self, job: Mapping[str, Any]) -> dict[str, Any]:
        from agentrecipes import experiment
        from agentrecipes.compile import RunPlace, compile_recipe
        from agentrecipes.training.reuse import Stages

        if job["parts"]:
            add_folder(Path(job["parts"]))
        recipe = load(job["recipe"], job["overrides"], profile=job["profile"])
        folder = Path(job["folder"])
        place = RunPlace(Path(job["runs"]), folder, Within(job["parent"], job["tags"]))
        with locked(Path(job["lock"])):
            if (found := finished(folder)) is not None:
                return found
            again = (folder / "recipe.yaml").is_file()
            if job["reuse"]:
                stages = Stages(place.runs, recipe, folder, lambda: self._stop.asked)
                place = replace(place, stages=stages)
                if not again and (name := stages.take()) is not None:
                    self.note(f"{folder.name}: stages up to {name!r} were run already")
                    again = True
            made = compile_recipe(recipe, place)
            return experiment.run(made, self, resume=again, stop=self._stop)

    # What its runs report to.

    def stage(self, name: str, algorithm: str, total: int) -> None:
        """Nothing: evaluations say enough."""

    def advance(self, step: int, figures: Mapping[str, float]) -> None:
        """Nothing: evaluations say enough."""

    def note(self, text: str) -> None:
        """A line of the worker's log."""
        sys.stderr.write(f"{text}\n")

    def evaluation(self, row: Mapping[str, Any]) -> None:
        """Tell an evaluation, and end the run here where that is the answer."""
        self._say({"do": "evaluation", "row": dict(row)})
        answer = self._queue.get()
        if answer is None:  # the sweep is gone
            self._queue.put(None)
        elif not answer["go"]:
            self._pruned = True
            raise RunStopped(f"pruned: {PRUNED}")

    def _say(self, message: Mapping[str, Any]) -> None:
        try:
            self._answers.write(json.dumps(message, default=str) + "\n")
            self._answers.flush()
        except OSError:
            self._stop.asked = True  # nobody listens any more


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a file's lock, which ends with the process: a run has one writer."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Serve the jobs on standard input; answers go to what was standard output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print must not look like an answer
    Worker(sys.stdin.buffer, answers).serve()
    sys.stderr.flush()
    os._exit(0)  # what was imported takes its time to end


if __name__ == "__main__":
    main()
