"""The sweep's side of its workers: processes that are started, asked, and started again."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import agentrecipes

WORKER = "agentrecipes.sweeps.worker"
SAVE_SECONDS = 120.0  # for a checkpoint and the model, before a worker is ended by force


@dataclass(frozen=True, slots=True)
class Said:
    """A message of a worker: ``Said(0, {"do": "done", "status": "finished"})``."""

    worker: int
    message: dict[str, Any]


class Pool:
    """Some workers, each with a log of its own in `folder`; what they say is read one by one."""

    def __init__(self, count: int, folder: Path) -> None:
        self._folder = folder
        self._said: queue.SimpleQueue[Said] = queue.SimpleQueue()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._count = count

    @property
    def numbers(self) -> range:
        """The workers' numbers."""
        return range(self._count)

    def send(self, worker: int, message: Mapping[str, Any]) -> None:
        """Send a message; a worker that is gone is started first, or says so later."""
        if worker not in self._processes:
            self._start(worker)
        pipe = self._processes[worker].stdin
        assert pipe is not None
        try:
            pipe.write(json.dumps(message).encode() + b"\n")
            pipe.flush()
        except OSError:
            return  # it died: its listener says "gone"

    def hear(self, seconds: float) -> Said | None:
        """The next message of any worker; None when there was none for so long."""
        try:
            return self._said.get(timeout=seconds)
        except queue.Empty:
            return None

    def forget(self, worker: int) -> int:
        """Take leave of a worker that is gone; its exit code, negative for a signal."""
        process = self._processes.pop(worker)
        if process.stdin is not None:
            with contextlib.suppress(OSError):
                process.stdin.close()
        return process.wait()

    def stop(self) -> None:
        """Ask all to save what they do and to stop."""
        for worker in list(self._processes):
            self.send(worker, {"do": "stop"})

    def close(self, seconds: float = SAVE_SECONDS) -> None:
        """End all: by closing their input, after `seconds` by force."""
        for process in self._processes.values():
            if process.stdin is not None:
                with contextlib.suppress(OSError):
                    process.stdin.close()
        for process in self._processes.values():
            try:
                process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _start(self, worker: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with (self._folder / f"worker-{worker}.log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=_environment(worker),
                start_new_session=True,  # Ctrl-C is for the sweep; it tells its workers itself
            )
        self._processes[worker] = process
        assert process.stdout is not None
        threading.Thread(target=self._listen, args=(worker, process.stdout), daemon=True).start()

    def _listen(self, worker: int, pipe: IO[bytes]) -> None:
        with pipe:
            for line in pipe:
                self._said.put(Said(worker, json.loads(line)))
        self._said.put(Said(worker, {"do": "gone"}))


def _environment(worker: int) -> dict[str, str]:
    """A worker's environment: our sources, and of several GPUs that are named one."""
    source = str(Path(agentrecipes.__file__).parents[1])
    known = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    found = {**os.environ, "PYTHONPATH": os.pathsep.join([*known, source])}
    devices = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    if len(devices) > 1:
        found["CUDA_VISIBLE_DEVICES"] = devices[worker % len(devices)]
    return found
