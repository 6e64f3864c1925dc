"""Runs a Python program in ``jail.py`` and says what came of it; nothing of it is left behind."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentrecipes.errors import TaskFailed

JAIL = Path(__file__).with_name("jail.py")
GRACE_SECONDS = 5.0  # for the jail to end what runs in it
NOBODY = 65534


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one program may use."""

    seconds: float = 10.0
    memory: int = 512 << 20  # bytes, of all its processes together
    files: int = 16 << 20  # bytes it may write
    processes: int = 16
    output: int = 10_000  # bytes of what it prints
    bubblewrap: str | None = None  # its executable; None: namespaces of our own


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: ``Ended("4\\n", 0, "", ("namespaces",))``."""

    text: str  # what it printed, errors too; at most `Allowance.output` bytes
    code: int  # its exit code; below 0, or above 128: the signal that ended it
    reason: str  # "": it ended itself; else seconds, memory or output: what it used up
    layers: tuple[str, ...]  # what confined it, besides limits and Landlock


async def confined(code: str, allowance: Allowance) -> Ended:
    """Run `code` as a Python program of its own.

    Raises:
        TaskFailed: the jail itself did not work.
    """
    folder = tempfile.mkdtemp(prefix="program-")
    reading, writing = os.pipe()
    try:
        if os.geteuid() == 0:
            os.chown(folder, NOBODY, NOBODY)
        config = _config(folder, writing, allowance)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(JAIL), json.dumps(config)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            pass_fds=(writing,),
            env={},
            cwd="/",
            start_new_session=True,
        )
        os.close(writing)
        writing = -1
        try:
            said, reason = await _talk(process, code, allowance)
        finally:
            await asyncio.shield(_ended(process))
        told = os.read(reading, 4096)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
        shutil.rmtree(folder, ignore_errors=True)
    text = said[: allowance.output].decode("utf-8", "replace").replace(f"{folder}/", "")
    if not told and reason:  # it was ended before the program had begun
        return Ended(text, -signal.SIGTERM, reason, ())
    if not told:
        raise TaskFailed(f"the python tool's jail did not work: {text.strip()[-300:]}")
    found = json.loads(told)
    used_up = reason or ("memory" if found["reason"] == "memory" else "")
    return Ended(text, int(found["code"]), used_up, tuple(found["layers"]))


async def _talk(
    process: asyncio.subprocess.Process, code: str, allowance: Allowance
) -> tuple[bytes, str]:
    """What the program printed, and what it used up, if that ended it."""
    assert process.stdin is not None
    assert process.stdout is not None
    said = bytearray()
    try:
        async with asyncio.timeout(allowance.seconds):
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                process.stdin.write(code.encode("utf-8", "replace"))
                process.stdin.close()
                await process.stdin.wait_closed()
            while piece := await process.stdout.read(65536):
                said += piece
                if len(said) > allowance.output:
                    return bytes(said), "output"
            await process.wait()
    except TimeoutError:
        return bytes(said), "seconds"
    return bytes(said), ""


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Have the jail end everything in it; if it does not, end the jail."""
    rest = asyncio.create_task(_drained(process))  # a full pipe would keep the process waiting
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(GRACE_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    await rest


async def _drained(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while await process.stdout.read(65536):
        pass


def _config(folder: str, status: int, allowance: Allowance) -> dict[str, Any]:
    return {
        "work": folder,
        "status": status,
        "python": sys.executable,
        "jail": str(JAIL),
        "bubblewrap": allowance.bubblewrap,
        "readable": list(_readable()),
        "memory": allowance.memory,
        "files": allowance.files,
        "processes": allowance.processes,
        "seconds": int(allowance.seconds) + 1,
    }


def _readable() -> Iterator[str]:
    """What Python needs to start: its own folders, the system's libraries, this file's program."""
    paths = {sys.prefix, sys.base_prefix, str(Path(os.path.realpath(sys.executable)).parent.parent)}
    paths |= {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"], str(JAIL)}
    paths |= {"/usr", "/bin", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime"}
    for path in sorted(paths):
        if os.path.exists(path) and path != "/":
            yield path
