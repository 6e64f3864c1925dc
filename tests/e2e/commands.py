"""The command line in processes of their own, without importing everything again for each.

Run as a program this file imports what `run` needs once, and forks a process for every command
that comes in as a line of JSON; `Commands` is the other end. Each process is a real one: it has its
own arguments, output, signals and limits, and ends with the command's exit code.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # as a program it is started with no path of its own

import killing

PATIENCE_SECONDS = 60.0


@dataclass
class Command:
    """One command, running or over."""

    folder: Path
    pid: int = 0
    code: int | None = None
    over: threading.Event = field(default_factory=threading.Event)
    patience: float = field(default_factory=lambda: PATIENCE_SECONDS)

    @property
    def out(self) -> str:
        return (self.folder / "stdout").read_text()

    @property
    def err(self) -> str:
        return (self.folder / "stderr").read_text()

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout; there must be nothing else."""
        return json.loads(self.out)

    def signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def wait(self) -> Command:
        """Wait for the end; a command that takes too long is killed and fails the test."""
        if not self.over.wait(self.patience):
            self.signal(signal.SIGKILL)
            raise AssertionError(f"the command takes too long; it said: {self.err}")
        return self

    def until(self, there: Callable[[], bool]) -> Command:
        """Wait until something is there, while the command still runs."""
        deadline = time.monotonic() + self.patience
        while not there():
            assert not self.over.is_set(), f"it ended too early: {self.err}"
            assert time.monotonic() < deadline, f"it never came; it said: {self.err}"
            time.sleep(0.005)
        return self

    def says(self, text: str) -> Command:
        """Wait until the command has written `text` to stderr."""
        return self.until(lambda: text in self.err)


class Commands:
    """Starts commands in `folder`, each with an output folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "80"}
        self._server = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._running: dict[str, Command] = {}
        self._count = 0
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def start(
        self,
        *words: object,
        file_bytes: int | None = None,
        env: dict[str, str] | None = None,
        typed: str = "",
        kill: dict[str, Any] | None = None,
    ) -> Command:
        """Start ``agentrecipes`` with these words; no file may grow beyond `file_bytes`.

        `typed` is what stands on its standard input; `kill` is where it is killed, in the words of
        ``killing.py``.
        """
        self._count += 1
        command = Command(self.folder / f"command-{self._count}")
        command.folder.mkdir()
        for name in ("stdout", "stderr"):
            (command.folder / name).touch()
        (command.folder / "stdin").write_text(typed)
        self._running[str(command.folder)] = command
        request = {
            "words": [str(word) for word in words],
            "cwd": str(self.folder),
            "output": str(command.folder),
            "file_bytes": file_bytes,
            "env": env or {},
            "kill": kill or {},
        }
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return command.until(lambda: command.pid > 0)

    def run(self, *words: object, **options: Any) -> Command:
        """Run a command to its end."""
        return self.start(*words, **options).wait()

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait(PATIENCE_SECONDS)
        self._listener.join()

    def _listen(self) -> None:
        assert self._server.stdout is not None
        with self._server.stdout as answers:
            for line in answers:
                told = json.loads(line)
                command = self._running[told["output"]]
                if "pid" in told:
                    command.pid = told["pid"]
                else:
                    command.code = told["code"]
                    command.over.set()


def serve() -> None:
    """Import everything once, then fork a process for every line of standard input."""
    import agentrecipes.experiment  # noqa: F401 - what every command would import again
    from agentrecipes.cli import main, progress  # noqa: F401

    lock = threading.Lock()

    def tell(**said: object) -> None:
        with lock:
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()

    def attend(pid: int, output: str) -> None:
        _, status = os.waitpid(pid, 0)
        tell(output=output, code=os.waitstatus_to_exitcode(status))

    waiting = []
    for line in sys.stdin:
        request = json.loads(line)
        with lock:
            pid = os.fork()
        if pid == 0:
            become(request)
        tell(output=request["output"], pid=pid)
        waiting.append(threading.Thread(target=attend, args=(pid, request["output"])))
        waiting[-1].start()
    for thread in waiting:
        thread.join()
    os._exit(0)  # nothing is left to say, and what was imported takes its time to end


def become(request: dict[str, Any]) -> None:
    """Be the command, in the forked process."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{request['output']}/{name}", os.O_WRONLY | os.O_APPEND), number)
    os.dup2(os.open(f"{request['output']}/stdin", os.O_RDONLY), 0)
    os.chdir(request["cwd"])
    os.environ.update(request["env"])
    if (most := request["file_bytes"]) is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    from agentrecipes.cli.main import main

    kill, told = request["kill"], None
    if tell := kill.get("tell"):
        told = killing.count(kill["folder"])
    elif len(kill) > 1:  # more than the folder
        killing.arm(kill, kill["folder"])
    code = 70
    try:
        main(request["words"])
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # what Python itself would do at the end of a program
        sys.excepthook(*sys.exc_info())
        code = 1
    if told is not None:
        Path(tell).write_text(json.dumps(told()))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    serve()
