"""One process a device: starts the ranks of a run, waits for them, and leaves none behind.

Each rank reads the resolved recipe from a job file and has the run's folder in its environment. The
ranks are sessions of their own, so that a signal reaches them once, from here; they hold a pipe to
this process and end with it, however it ends.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentrecipes.cli.output import note
from agentrecipes.components import added_files
from agentrecipes.errors import (
    AgentRecipesError,
    CheckFailed,
    EngineError,
    MissingExtra,
    Problem,
    RecipeError,
)

if TYPE_CHECKING:
    from agentrecipes.compile import RunPlace
    from agentrecipes.recipe.load import Recipe

GRACE_SECONDS = 30.0  # for the other ranks to write what they have, when one has ended badly
POLL_SECONDS = 0.05
LEASH = "AGENTRECIPES_LEASH"  # file descriptor of the pipe whose end means: this process is gone
RUN = "AGENTRECIPES_RUN"  # the run's folder
KINDS: dict[int, type[AgentRecipesError]] = {3: MissingExtra, 4: CheckFailed}  # by exit code
LINES = 12  # of what a rank said, where nothing else gives its reason


def launch(recipe: Recipe, place: RunPlace, *, resume: bool, count: int) -> dict[str, Any]:
    """Carry a recipe out in `count` processes; the summary that rank 0 wrote.

    Raises:
        AgentRecipesError: what a rank refused the recipe with.
    """
    with tempfile.TemporaryDirectory(prefix="agentrecipes-") as name:
        folder = Path(name)
        _write_job(folder / "job.json", recipe, place, resume=resume)
        with _started(folder, place, count) as processes:
            codes = _waited(processes)
        if not any(codes):
            summary: dict[str, Any] = json.loads((place.folder / "summary.json").read_bytes())
            return summary
        return _ended(recipe, place, folder=folder, codes=codes)


def _write_job(path: Path, recipe: Recipe, place: RunPlace, *, resume: bool) -> None:
    job = {
        "recipe": recipe.to_yaml(),
        "folder": str(recipe.folder.resolve()),
        "profile": recipe.profile,
        "origin": dict(recipe.origin),
        "parts": sorted({str(file.resolve().parent) for file in added_files()}),
        "runs": str(place.runs.resolve()),
        "place": str(place.folder.resolve()),
        "within": asdict(place.within),
        "resume": resume,
    }
    path.write_text(json.dumps(job), encoding="utf-8")


@contextmanager
def _started(folder: Path, place: RunPlace, count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The ranks, while they run; when this ends none of them is left."""
    from agentrecipes.training.signals import SIGNALS
    from agentrecipes.training.strategies import OWN_RANK

    hold, leash = os.pipe()
    port = _free_port()
    processes: list[subprocess.Popen[bytes]] = []
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        for rank in range(count):
            environment = {
                **os.environ,
                OWN_RANK: str(rank),
                "RANK": str(rank),
                "LOCAL_RANK": str(rank),
                "NODE_RANK": "0",
                "WORLD_SIZE": str(count),
                "MASTER_ADDR": "127.0.0.1",
                "MASTER_PORT": str(port),
                LEASH: str(hold),
                RUN: str(place.folder.resolve()),
            }
            processes.append(_start(folder, rank, environment=environment, hold=hold))
        for number in before:
            signal.signal(number, lambda sent, _: _pass_on(processes, sent))
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        os.close(leash)
        os.close(hold)
        for number, handler in before.items():
            signal.signal(number, handler)


def _start(
    folder: Path, rank: int, *, environment: dict[str, str], hold: int
) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "agentrecipes.cli.rank", str(folder / "job.json")]
    with (folder / f"{rank}.log").open("wb") as log:
        return subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=None if rank == 0 else log,
            pass_fds=(hold,),
            start_new_session=True,
        )


def _pass_on(processes: Sequence[subprocess.Popen[bytes]], number: int) -> None:
    for process in processes:
        if process.poll() is None:
            process.send_signal(number)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _waited(processes: Sequence[subprocess.Popen[bytes]]) -> list[int]:
    """The exit codes of all ranks; one that ended badly gives the others a limited time."""
    deadline: float | None = None
    while None in (codes := [process.poll() for process in processes]):  # all are asked, each time
        if deadline is None and any(codes):
            deadline = time.monotonic() + GRACE_SECONDS
        if deadline is not None and time.monotonic() > deadline:
            for process in processes:
                if process.poll() is None:
                    process.kill()
        time.sleep(POLL_SECONDS)
    return [code for code in codes if code is not None]


def _ended(
    recipe: Recipe, place: RunPlace, *, folder: Path, codes: Sequence[int]
) -> dict[str, Any]:
    """The summary of a run in which a rank ended badly; stderr gets the reason."""
    from agentrecipes.training.ranks import GONE

    refusals = [_refusal(folder, rank) for rank in range(len(codes))]
    own = [error for error in refusals if error is not None and str(error) != GONE]
    path = place.folder / "summary.json"
    if own and own[0].exit_code != EngineError.exit_code:
        raise own[0]
    for rank, (code, error) in enumerate(zip(codes, refusals, strict=True)):
        if error is not None and str(error) != GONE:
            note(f"error: rank {rank}: {error}")
        elif code < 0 and not (rank and own):
            note(f"error: rank {rank} was ended by {signal.Signals(-code).name}")
        elif code and rank and error is None:
            note(f"error: rank {rank} ended with code {code}:\n{_last_lines(folder, rank)}")
    summary: dict[str, Any] = json.loads(path.read_bytes()) if path.is_file() else {}
    if codes[0] in (0, 1, 130) and summary.get("status") not in (None, "running", "finished"):
        return summary
    return _written(recipe, place, summary)


def _refusal(folder: Path, rank: int) -> AgentRecipesError | None:
    """The error that a rank left at its end."""
    path = folder / f"{rank}.error"
    if not path.is_file():
        return None
    told = json.loads(path.read_text(encoding="utf-8"))
    if told["problems"]:
        return RecipeError([Problem(**problem) for problem in told["problems"]])
    return KINDS.get(told["exit_code"], EngineError)(told["message"])


def _last_lines(folder: Path, rank: int) -> str:
    text = (folder / f"{rank}.log").read_text(encoding="utf-8", errors="replace")
    return "\n".join(text.rstrip().splitlines()[-LINES:])


def _written(recipe: Recipe, place: RunPlace, before: dict[str, Any]) -> dict[str, Any]:
    """Write the summary that rank 0 could not write any more."""
    from agentrecipes.tracking.replacing import write
    from agentrecipes.tracking.tables import Tables
    from agentrecipes.training.story import Story, as_json

    told = Story().summary(recipe, place.folder, status="failed", seconds=0.0)
    summary = {**told, **before, "status": "failed"}
    place.folder.mkdir(parents=True, exist_ok=True)
    write(place.folder / "summary.json", as_json(summary))
    Tables(place.folder / "tables", place.name).run(summary, recipe.data)
    return summary
