"""``events.jsonl``: what happened to a run and when, one JSON object a line.

It tells every sitting as it was: what a resumed run does again stands there again.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Events:
    """Appends to one run's log. A line is written in one piece; trouble is never raised.

    Without a path it says nothing: of a run's ranks, one writes.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._opened = False

    def add(self, event: str, **facts: Any) -> None:
        """Append ``{"time": …, "event": event, …facts}``."""
        if self._path is None:
            return
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event}
        line = json.dumps({**told, **facts}, ensure_ascii=False, default=str) + "\n"
        try:
            if not self._opened:
                self._mend(self._path)
            with self._path.open("ab", buffering=0) as file:
                file.write(line.encode())
        except OSError:
            return  # the summary's list of losses is for what cannot be made again

    def _mend(self, path: Path) -> None:
        """Drop half a line, which a kill or a full disk left."""
        self._opened = True
        if not path.exists():
            return
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(path, whole)
