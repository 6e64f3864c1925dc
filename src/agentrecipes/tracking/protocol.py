"""What a tracker must do: show a run elsewhere, and never be in its way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from agentrecipes.records import Place, Scored

Status = Literal["finished", "failed", "interrupted", "stopped"]
"""How a run ended, in the summary's words."""


@dataclass(frozen=True, slots=True)
class DataInput:
    """A data set that a run read: ``DataInput("world", "3fa9c1…", "world", "train", 3000)``."""

    name: str
    digest: str  # of its content, or of what generates it
    source: str  # where it came from: a path, a hub name, a generator's name
    split: str
    tasks: int


@dataclass(frozen=True, slots=True)
class Within:
    """What a run is part of: ``Within("3fa9c1…", {"study": "rag_r1", "trial": "4"})``."""

    parent: str | None = None  # the tracked run that this one is nested in
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known about a run when it starts."""

    run: str  # its name; starting the same name again goes on with the same tracked run
    experiment: str
    recipe: Mapping[str, Any]  # resolved, environment variables unexpanded
    recipe_file: Path  # recipe.yaml in the run folder
    recipe_hash: str
    seed: int
    profile: str | None = None
    git: str = ""  # commit, with "-dirty" where the tree was
    lock_hash: str = ""
    datasets: tuple[DataInput, ...] = ()
    within: Within = field(default_factory=Within)


class Tracker(Protocol):
    """Where a run is shown. No method raises for trouble with the store: ``lost`` says it."""

    lost: list[str]

    @property
    def run_id(self) -> str | None:
        """The store's name for the run; None where there is none."""
        ...

    def start(self, info: RunInfo) -> None: ...

    def metrics(self, values: Mapping[str, float], step: int) -> None: ...

    def trace(self, scored: Sequence[Scored], place: Place) -> None:
        """Store trajectories for reading; how many of them is the tracker's business."""
        ...

    def artifact(self, path: Path, folder: str = "") -> None:
        """Store a file, or a folder with all it holds; it must stay until `flush` or `finish`."""
        ...

    def model(self, path: Path) -> None:
        """Store the folder of the trained model, under the name that it is to have, if any."""
        ...

    def flush(self) -> None:
        """Wait until all so far is stored or lost."""
        ...

    def finish(self, status: Status) -> None:
        """Flush, and close the run; the tracker takes nothing more."""
        ...


class NullTracker:
    """Tracks nothing: ``tracking: {backend: none}``."""

    def __init__(self) -> None:
        self.lost: list[str] = []

    @property
    def run_id(self) -> str | None:
        return None

    def start(self, info: RunInfo) -> None: ...

    def metrics(self, values: Mapping[str, float], step: int) -> None: ...

    def trace(self, scored: Sequence[Scored], place: Place) -> None: ...

    def artifact(self, path: Path, folder: str = "") -> None: ...

    def model(self, path: Path) -> None: ...

    def flush(self) -> None: ...

    def finish(self, status: Status) -> None: ...
