"""A vLLM server that is started for a run and ends with it."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx

from agentrecipes.engines.vllm_runtime.setup import ENVIRONMENT
from agentrecipes.errors import EngineError

HOST = "127.0.0.1"  # its routes for weights let a caller run code in it
PATIENCE_SECONDS = 15.0  # for a server that is asked to end
PARENT_DIED = 1  # PR_SET_PDEATHSIG of prctl(2)


def flags(arguments: Mapping[str, Any]) -> list[str]:
    """vLLM's engine arguments as its command line writes them."""
    words = []
    for name, value in arguments.items():
        flag = "--" + name.replace("_", "-")
        if value is True:
            words.append(flag)
        elif value is not False:
            words += [flag, *(map(str, value) if isinstance(value, list) else [str(value)])]
    return words


def command(arguments: Mapping[str, Any], *, host: str, port: int) -> list[str]:
    """What starts a server; the `vllm` command is not there in every build."""
    program = ["-m", "vllm.entrypoints.openai.api_server", "--enable-scale-out"]  # ids in, ids out
    return [sys.executable, *program, "--host", host, "--port", str(port), *flags(arguments)]


def shown(arguments: Mapping[str, Any], port: int) -> str:
    """The same as a line for a shell, for servers that somebody else starts."""
    settings = {**ENVIRONMENT, "VLLM_SERVER_DEV_MODE": "1"}
    line = command(arguments, host=HOST, port=port)
    return " ".join(f"{k}={v}" for k, v in settings.items()) + " " + shlex.join(line)


class ServerProcess:
    """One server, its log, and its end."""

    def __init__(
        self, arguments: Mapping[str, Any], log: Path, *, port: int | None, gpus: Sequence[int]
    ) -> None:
        port = free_port() if port is None else port
        _require_free(port)
        self.url = f"http://{HOST}:{port}"
        self.log = log
        given = {**ENVIRONMENT, "OMP_NUM_THREADS": "1", **os.environ, "VLLM_SERVER_DEV_MODE": "1"}
        if gpus:
            given["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, gpus))
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                command(arguments, host=HOST, port=port),
                env={**given, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=_end_with_the_parent,
            )

    def wait(self, seconds: float) -> None:
        """Return once it answers.

        Raises:
            EngineError: it ended, or does not answer in time.
        """
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if not self.alive:
                raise EngineError(f"vllm_server engine: the server did not start: {self.last()}")
            with contextlib.suppress(httpx.HTTPError):
                if httpx.get(f"{self.url}/health", trust_env=False).is_success:
                    return
            time.sleep(0.25)
        raise EngineError(
            f"vllm_server engine: the server does not answer after {seconds:g} s: {self.last()} "
            "Raise start_seconds if it only needs longer."
        )

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def last(self) -> str:
        """The last line of its log that names an error, and where the log is."""
        lines = [line.strip() for line in self.log.read_text(errors="replace").splitlines()]
        named = [line for line in lines if "Error" in line or "error:" in line]
        said = (named or lines or ["it said nothing"])[-1]
        return f"{said[-300:].rstrip('.')}. Its log: {self.log}."

    def close(self) -> None:
        """End it, and what it has started."""
        for each in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, each)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(PATIENCE_SECONDS)


def free_port() -> int:
    """A port of this machine that nobody listens on now."""
    with socket.socket() as found:
        found.bind((HOST, 0))
        return int(found.getsockname()[1])


def _require_free(port: int) -> None:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError as error:
            raise EngineError(
                f"vllm_server engine: port {port} is taken. Write another `port`, none for one "
                f"that is free, or `urls: [http://{HOST}:{port}]` if that server is meant."
            ) from error


def _end_with_the_parent() -> None:
    """Ask Linux to end the server when the run is killed: it would keep its memory."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PARENT_DIED, signal.SIGTERM)
