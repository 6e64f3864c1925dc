"""The command line in processes of its own, and one whole run that several tests look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Command, Commands
from small import RECIPE, SMALL

PARTS = Path(__file__).parent / "parts"
QUICK = [
    "rewards=[spread]",
    "stages.imitate.steps=12",
    "evaluation.tasks=3",
    "tripwires.dead_type.tasks=2",
]


@pytest.fixture(scope="session")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    """Starts commands in one folder, where ``runs`` is."""
    started = Commands(tmp_path_factory.mktemp("commands"))
    yield started
    started.close()


@pytest.fixture(scope="session")
def start(commands: Commands):
    """Start the small recipe in ``runs/<name>``, with rewards that an untrained policy spreads."""

    def started(name: str, *words: object, **options: Any) -> Command:
        first = [RECIPE, *SMALL, *QUICK]
        folder = [] if "--run-dir" in words else ["--run-dir", commands.folder / "runs" / name]
        last = ["--parts", PARTS, "--json"]
        return commands.start("run", *first, *words, *folder, *last, **options)

    return started


@pytest.fixture(scope="session")
def resume(commands: Commands):
    """Go on with ``runs/<name>``; the command when it is over."""

    def resumed(name: str, **options: Any) -> Command:
        folder = commands.folder / "runs" / name
        return commands.run("run", "--resume", folder, "--parts", PARTS, "--json", **options)

    return resumed


@pytest.fixture(scope="session")
def whole(commands: Commands, start) -> Path:
    """The folder of a run that nothing disturbed, tracked by MLflow."""
    done = start("whole", "tracking.backend=mlflow").wait()
    assert done.code == 0, done.err
    return commands.folder / "runs" / "whole"
