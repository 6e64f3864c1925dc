"""Text that must stay as it is: ``SNAPSHOTS=write pytest tests/cli`` rewrites the files."""

from __future__ import annotations

import os
import re
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "snapshots"


def settled(text: str, folder: Path) -> str:
    """The text with what differs from run to run replaced: folders, times, hashes, versions."""
    text = text.replace(str(folder), "TMP")
    text = re.sub(r"/[\w./\-]*/(?=(recipes|_recipes)/)", "PACKAGE/", text)
    text = re.sub(r"\b[0-9a-f]{64}\b", "SHA256", text)
    text = re.sub(r"\b[0-9a-f]{12}\b", "HASH", text)
    text = re.sub(r'"seconds": [\d.e\-]+', '"seconds": TIME', text)
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") + "\n"


def check_snapshot(name: str, text: str) -> None:
    """Hold the text to the stored file of that name."""
    path = FOLDER / f"{name}.txt"
    if os.environ.get("SNAPSHOTS") == "write":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"there is no snapshot {name}; SNAPSHOTS=write makes it"
    assert text == path.read_text(encoding="utf-8")
