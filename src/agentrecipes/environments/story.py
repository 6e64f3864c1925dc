"""Story files: whether one is whole, and what of a game's text is worth showing."""

from __future__ import annotations

import json
import re
from pathlib import Path

Z8_HEADER, GLULX_HEADER = 64, 36  # bytes
BANNER = re.compile(r"^[\s$\\|_/>]+$")  # TextWorld's name in large letters
AFTER_THE_END = "Would you like to RESTART"
LONGEST = 120  # characters of a command; interpreters have a buffer for it
OUTSIDE = {  # commands to the interpreter: they end games and write files
    *("save", "restore", "restart", "quit", "q", "undo", "verify", "record", "replay"),
    *("script", "unscript", "transcript"),
}
PROMPT = re.compile(r"\n?>[ \t]*(?:-=[^\n]*)?\s*$")  # the prompt, and the status line after it


def fault(file: Path) -> str | None:
    """Why a story file and its ``.json`` cannot be played; None where they can.

    The interpreter ends the whole process over a broken file, so it is never shown one.
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        return f"it cannot be read ({error.strerror})"
    wrong = _z8(data) if file.suffix == ".z8" else _glulx(data)
    if wrong is not None:
        return wrong
    beside = file.with_suffix(".json")
    try:
        json.loads(beside.read_text(encoding="utf-8"))
    except OSError:
        return f"{beside.name} is not beside it"
    except ValueError as error:
        return f"{beside.name} is no JSON ({error})"
    return None


def _z8(data: bytes) -> str | None:
    """The Z-Machine Standards Document 1.1, section 11: version, length in eighths, checksum."""
    if len(data) < Z8_HEADER or data[0] != 8:
        return "it is no story of version 8 of the Z-machine"
    length = int.from_bytes(data[0x1A:0x1C], "big") * 8
    if length > len(data):
        return f"it ends after {len(data)} of {length} bytes"
    if sum(data[Z8_HEADER:length]) & 0xFFFF != int.from_bytes(data[0x1C:0x1E], "big"):
        return "its checksum does not match"
    return None


def _glulx(data: bytes) -> str | None:
    """The Glulx specification, section 1.4: magic number, length, checksum of 32-bit words."""
    if len(data) < GLULX_HEADER or data[:4] != b"Glul":
        return "it is no Glulx story"
    length = int.from_bytes(data[12:16], "big")
    if length > len(data) or length % 4:
        return f"it ends after {len(data)} of {length} bytes"
    told = int.from_bytes(data[32:36], "big")
    words = range(0, length, 4)
    total = sum(int.from_bytes(data[place : place + 4], "big") for place in words)
    return None if (total - told) & 0xFFFFFFFF == told else "its checksum does not match"


def readable(text: str) -> str:
    """A game's text without banner, prompt, status line and empty lines."""
    lines = PROMPT.sub("", text).splitlines()
    kept = [" ".join(line.split()) for line in lines if not BANNER.match(line)]
    return "\n".join(line for line in kept if line and not line.startswith(AFTER_THE_END))


def refused(command: str) -> str | None:
    """Why a command is not passed on to the interpreter; None where it is."""
    if len(command) > LONGEST or not command.isascii():
        return f"a command has up to {LONGEST} characters of ASCII"
    first = command.lower().replace(".", " ").replace(",", " ").split()
    if OUTSIDE & set(first[:1]):
        return f"{first[0]!r} is no command of this game"
    return None
