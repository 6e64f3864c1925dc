"""An MCP server that takes notes, and misbehaves when it is asked to."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")
notes: list[str] = []


@server.tool()
def write(note: str) -> str:
    """Keep a note; says how many there are."""
    notes.append(note)
    return str(len(notes))


@server.tool()
def wait(seconds: float) -> str:
    """Take that long."""
    time.sleep(seconds)
    return "late"


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.tool()
def die() -> str:
    """End the server without a word."""
    os._exit(3)


if __name__ == "__main__":
    with Path(sys.argv[1]).open("a", encoding="utf-8") as pids:
        pids.write(f"{os.getpid()}\n")
    if sys.argv[2:]:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run()
