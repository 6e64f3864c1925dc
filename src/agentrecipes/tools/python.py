"""Python: the tool of CodeAct, ToRL and ARTIST, for programs that nobody has read before."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.errors import Problem, TaskFailed
from agentrecipes.records import Call, ToolResult
from agentrecipes.tools.confinement import Allowance, Ended, confined

MIB = 1 << 20
SCHEMA = {
    "name": "python",
    "description": "Runs a Python program and gives back what it prints. Nothing is kept.",
    "parameters": {
        "type": "object",
        "properties": {"code": {"type": "string", "description": "The whole program."}},
        "required": ["code"],
    },
}


@component("tool")
class Python(Component):
    """Each call is a program of its own, in a process that can reach nothing.

    It has no network, no environment, no file outside of a small folder that goes with it, and
    limits on time, memory, processes, files and what it prints; its whole process tree ends with
    it. Where the kernel has user namespaces and Landlock they are used, else the limits alone.
    """

    seconds: Annotated[float, Field(gt=0.0)] = 8.0
    memory_mib: Annotated[int, Field(ge=64)] = 512  # of all its processes together
    files_mib: Annotated[int, Field(ge=1)] = 16  # that it may write
    processes: Annotated[int, Field(ge=1)] = 16
    output_bytes: Annotated[int, Field(ge=1)] = 10_000  # more ends it
    isolation: Literal["best", "namespaces", "bubblewrap"] = (
        "best"  # bubblewrap where it is installed, else namespaces; or: refuse to run without
    )

    def rules(self, stage: Any) -> Iterable[Problem]:
        """Bubblewrap must be there where it is required."""
        if self.isolation == "bubblewrap" and shutil.which("bwrap") is None:
            yield Problem(
                code="missing_program",
                path="isolation",
                message="bubblewrap is required, and there is no bwrap on the PATH",
                suggestion="Install the package bubblewrap, or write `isolation: namespaces`.",
            )

    @property
    def schema(self) -> Mapping[str, Any]:  # type: ignore[override]  # pydantic's is obsolete
        """One argument: the code."""
        return SCHEMA

    async def call(self, arguments: Mapping[str, Any]) -> ToolResult:
        """What the program printed; its traceback, or the limit that it met, is the error.

        Raises:
            TaskFailed: it could not be run as `isolation` says.
        """
        call = Call("python", dict(arguments))
        ended = await confined(str(arguments.get("code", "")), self._allowance)
        if self.isolation == "namespaces" and not ended.layers and not ended.reason:
            raise TaskFailed("this kernel has no user namespaces, and isolation: namespaces asks")
        error = self._error(ended)
        return ToolResult(call, ended.text) if error is None else ToolResult(call, error=error)

    @property
    def _allowance(self) -> Allowance:
        wrapped = None if self.isolation == "namespaces" else shutil.which("bwrap")
        return Allowance(
            seconds=self.seconds,
            memory=self.memory_mib * MIB,
            files=self.files_mib * MIB,
            processes=self.processes,
            output=self.output_bytes,
            bubblewrap=wrapped,
        )

    def _error(self, ended: Ended) -> str | None:
        said = ended.text.strip()
        told = {
            "seconds": f"the program took longer than {self.seconds:g} s",
            "memory": f"the program used more than {self.memory_mib} MiB",
            "output": f"the program printed more than {self.output_bytes} bytes",
        }.get(ended.reason)
        if told is not None:
            return f"{told}; it had printed: {said[:200]}" if said else told
        if ended.code == 0:
            return None
        return said or f"the program ended with code {ended.code}"
