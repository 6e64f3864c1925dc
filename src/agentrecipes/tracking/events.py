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
    """Appends to one run's log. A line is written in one piece; trouble is never raised."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = False

    def add(self, event: str, **facts: Any) -> None:
        """Append ``{"time": …, "event": event, …facts}``."""
        told = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event}
        line = json.dumps({**told, **facts}, ensure_ascii=False, default=str) + "\n"
        try:
            if not self._opened:
                self._mend()
            with self._path.open("ab", buffering=0) as file:
                file.write(line.encode())
        except OSError:
            return  # the summary's list of losses is for what cannot be made again

    def _mend(self) -> None:
        """Drop half a line, which a kill or a full disk left."""
        self._opened = True
        if not self._path.exists():
            return
        data = self._path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            os.truncate(self._path, whole)
