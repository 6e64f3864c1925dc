"""Where a sweep keeps what it makes: runs beside all others, the rest in a folder of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Places:
    """``runs/sweeps/rag_r1/`` and ``runs/rag_r1-3fa9c1-0004-7/``."""

    runs: Path
    study: str
    token: str = ""  # of the study in its storage: another study of that name has other runs
    parent: str | None = None  # MLflow's run of the study
    parts: Path | None = None

    @property
    def folder(self) -> Path:
        """What belongs to the study: its page, the workers' logs, locks."""
        return self.runs / "sweeps" / self.study

    def run(self, number: int, seed: int) -> Path:
        """The folder of one run of a trial."""
        return self.runs / f"{self.study}-{self.token}-{number:04d}-{seed}"


def finished(folder: Path) -> dict[str, Any] | None:
    """The summary of a run that is over; None of one that is not."""
    path = folder / "summary.json"
    if not path.is_file():
        return None
    summary: dict[str, Any] = json.loads(path.read_bytes())
    return summary if summary["status"] == "finished" else None
