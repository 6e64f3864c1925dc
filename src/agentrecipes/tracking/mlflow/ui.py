"""MLflow's own pages on a store, in a process of their own, for this machine alone."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agentrecipes.errors import AgentRecipesError
from agentrecipes.tracking.mlflow.tracker import environment

HOST = "127.0.0.1"
UP_SECONDS = 300.0  # for the imports of a cold start
END_SECONDS = 10.0
LAST_WORDS = 400  # characters of its log that are shown when it did not start


@contextmanager
def served(uri: str, log: Path, port: int | None = None) -> Iterator[str]:
    """The address of MLflow's pages on the store `uri`, until the block is left.

    Raises:
        AgentRecipesError: the port is taken, or the pages do not come up.
    """
    chosen = _free(port)
    command = ["-m", "mlflow", "server", "--backend-store-uri", uri, "--host", HOST]
    with log.open("wb") as words:
        process = subprocess.Popen(
            [sys.executable, *command, "--port", str(chosen), "--workers", "1"],
            stdout=words,
            stderr=subprocess.STDOUT,
            env=environment(),
            cwd=log.parent,
            start_new_session=True,  # Ctrl-C is for us; we end it, with all its processes
        )
    try:
        address = f"http://{HOST}:{chosen}"
        _wait(process, address, log)
        yield address
    finally:
        _end(process)


def _free(port: int | None) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port or 0))
        except OSError as error:
            reason = error.strerror or error
            hint = "Name another --port, or none."
            raise AgentRecipesError(f"port {port}: {reason}. {hint}") from None
        return int(probe.getsockname()[1])


def _wait(process: subprocess.Popen[bytes], address: str, log: Path) -> None:
    deadline = time.monotonic() + UP_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        with (
            contextlib.suppress(OSError),
            urllib.request.urlopen(f"{address}/health", timeout=2) as answer,
        ):
            if answer.status == 200:
                return
        time.sleep(0.1)
    said = " ".join(log.read_text(errors="replace").split())[-LAST_WORDS:]
    raise AgentRecipesError(f"MLflow's pages did not come up; its last words: {said}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the server and the processes that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=END_SECONDS)
            return
