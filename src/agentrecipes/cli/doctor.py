"""``doctor``: what is installed and what is missing, without importing anything heavy."""

from __future__ import annotations

import os
import platform
import re
import shutil
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import typer

from agentrecipes.cli.arguments import Json
from agentrecipes.cli.output import emit_json, table

PACKAGE = "agentrecipes"
_REQUIREMENT = re.compile(r"^(?P<name>[\w.\-]+)(\[[^\]]*\])?\s*\(?(?P<bounds>[^;)]*)")
_EXTRA = re.compile(r"extra\s*==\s*['\"](?P<extra>[\w\-]+)['\"]")


@dataclass(frozen=True, slots=True)
class Need:
    """One dependency: ``Need("vllm", "vllm", ">=0.32", None)``; the base has no extra."""

    extra: str
    package: str
    wanted: str
    installed: str | None


def doctor(as_json: Json = False) -> None:
    """Show versions, what is missing, and the command that installs it."""
    found = needs()
    machine = machine_facts()
    missing = [need for need in found if need.installed is None and not need.extra]
    if as_json:
        packages = [
            {"package": n.package, "extra": n.extra, "wanted": n.wanted, "installed": n.installed}
            for n in found
        ]
        emit_json({"ok": not missing, "machine": machine, "packages": packages})
        raise typer.Exit(3 if missing else 0)
    typer.echo(table(("machine", ""), machine.items()))
    typer.echo("")
    rows = [(n.package, n.installed or "missing", n.wanted, n.extra or "base") for n in found]
    typer.echo(table(("package", "installed", "wanted", "part of"), rows))
    for line in advice(found):
        typer.echo(line)
    raise typer.Exit(3 if missing else 0)


def needs() -> list[Need]:
    """Every dependency of the package, base first, with its installed version."""
    found = []
    for line in requires(PACKAGE) or []:
        match = _REQUIREMENT.match(line)
        if match is None:
            continue
        extra = _EXTRA.search(line)
        name = match["name"]
        found.append(
            Need(extra["extra"] if extra else "", name, match["bounds"].strip(), installed(name))
        )
    return sorted(found, key=lambda need: (need.extra, need.package.lower()))


def installed(package: str) -> str | None:
    """The installed version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def advice(found: list[Need]) -> list[str]:
    """One line per part that lacks something: what is missing and the command that installs it."""
    lines = []
    for extra in sorted({need.extra for need in found}):
        missing = [n.package for n in found if n.extra == extra and n.installed is None]
        if missing:
            target = f"{PACKAGE}[{extra}]" if extra else PACKAGE
            lines.append(f"{extra or 'base'}: {', '.join(missing)} missing. pip install '{target}'")
    return lines


def machine_facts() -> dict[str, str]:
    """What the machine offers, as far as can be seen without a GPU library."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    gpus = len(list(Path("/proc/driver/nvidia/gpus").glob("*")))
    return {
        "agentrecipes": installed(PACKAGE) or "unknown",
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": str(os.cpu_count()),
        "memory": f"{memory:.1f} GiB",
        "NVIDIA GPUs": str(gpus),
        "disk free here": f"{shutil.disk_usage('.').free / 2**30:.1f} GiB",
    }
