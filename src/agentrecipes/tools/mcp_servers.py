"""The MCP servers that the user declared: what may be started, and where."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from agentrecipes.errors import RecipeError

VARIABLE = "AGENTRECIPES_MCP"
FILE = "mcp.json"


def declared() -> Mapping[str, str]:
    """Servers by name, as JSON: ``command``, ``args``, ``env``, ``cwd``; or ``url``, ``headers``.

    Nothing where there is no file.

    Raises:
        RecipeError: the file cannot be read, or declares something else.
    """
    named = os.environ.get(VARIABLE)
    path = Path(named or FILE)
    if not named and not path.is_file():
        return {}
    try:
        servers = json.loads(path.read_text(encoding="utf-8"))["mcpServers"]
        return {str(name): _plain(one) for name, one in servers.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise RecipeError(
            f"{path}: declares no MCP servers ({error}). Write "
            '{"mcpServers": {"NAME": {"command": "…", "args": ["…"]}}}, or "url" for a command'
        ) from error


def _plain(one: Mapping[str, object]) -> str:
    if not isinstance(one.get("command", one.get("url")), str):
        raise ValueError("a server needs a command or a url")
    return json.dumps(one, sort_keys=True)
