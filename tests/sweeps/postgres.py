"""A PostgreSQL server of the tests' own, on this machine alone, that can be stopped and started."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

FOLDERS = [Path(p) for p in os.environ.get("PATH", "").split(os.pathsep)]
FOLDERS += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def program(name: str) -> Path | None:
    found = (folder / name for folder in FOLDERS if (folder / name).is_file())
    return next((path.resolve() for path in found), None)


def missing() -> str:
    """Why there can be no server here; "" where there can be one."""
    if program("initdb") is None or program("pg_ctl") is None:
        return "PostgreSQL is not installed"
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed: pip install 'agentrecipes[postgres]'"
    return "" if os.geteuid() != 0 or _other() else "PostgreSQL refuses to run as root"


def _other() -> str | None:
    """Another user whom root can be, for PostgreSQL refuses root."""
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next((name for name in ("postgres", "nobody") if name in known), None)


class Server:
    """A server with one empty database; ``url`` is its address for SQLAlchemy."""

    def __init__(self) -> None:
        self._user = _other() if os.geteuid() == 0 else None
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgresql+psycopg://tests@127.0.0.1:{self.port}/postgres"
        self._run("initdb", "-D", "data", "-U", "tests", "--auth=trust", "--no-sync")
        self.start()

    def start(self) -> None:
        options = f"-p {self.port} -k {self.folder} -c listen_addresses=127.0.0.1 -c fsync=off"
        self._run("pg_ctl", "-D", "data", "-w", "-l", "log", "-o", options, "start")

    def stop(self) -> None:
        self._run("pg_ctl", "-D", "data", "-w", "-m", "immediate", "stop")

    def database(self, name: str) -> str:
        """The address of another database on the server."""
        import psycopg

        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as connection:
            connection.execute(f"create database {name}")
        return self.url.removesuffix("postgres") + name

    def close(self) -> None:
        if (self.folder / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.folder)

    def _run(self, name: str, *words: str) -> None:
        done = subprocess.run(
            [str(program(name)), *words],
            cwd=self.folder,
            user=self._user,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
