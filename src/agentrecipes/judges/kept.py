"""Replies that are kept: one file each, so that writers never meet and readers see whole files.

``FOLDER/ab/abcd….json`` is one line of JSON: prompt, reply, and who replied. All of them joined
(``cat FOLDER/*/*.json > judge.jsonl``) are what the judge ``recorded`` reads.
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def key_of(identity: Mapping[str, Any], prompt: str) -> str:
    """SHA-256 (hex) of everything that a reply depends on: judge, model, parameters, prompt."""
    whole = json.dumps([dict(identity), prompt], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(whole.encode()).hexdigest()


def prompt_hash(prompt: str) -> str:
    """SHA-256 (hex) of a prompt's text."""
    return hashlib.sha256(prompt.encode()).hexdigest()


class Kept:
    """The replies in one folder; it is made when the first one comes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str) -> Mapping[str, Any] | None:
        """What was kept under a key; None for nothing, and for a file that is damaged."""
        try:
            found = json.loads(self._path(key).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) and "reply" in found else None

    def put(self, key: str, line: Mapping[str, Any]) -> None:
        """Keep a reply; it appears whole or not at all.

        Raises:
            OSError: the folder cannot be written.
        """
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
        try:
            text = json.dumps(dict(line), sort_keys=True, ensure_ascii=False)
            partial.write_text(text + "\n", encoding="utf-8")
            os.replace(partial, path)
        finally:
            partial.unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        return self._folder / key[:2] / f"{key}.json"
