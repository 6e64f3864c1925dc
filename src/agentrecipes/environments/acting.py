"""What worlds that are acted in have in common: the tool ``act``, and how an episode ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from agentrecipes.numerics.answer_text import normalise
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.records import Call, Message

NO_COMMAND = "only act takes calls here, with a command"
WON = "won"  # the gold answer of every world; only the world can give it


def schema(about: str) -> Mapping[str, Any]:
    """The tool's schema: one argument, the command."""
    return {
        "name": "act",
        "description": about,
        "parameters": {
            "type": "object",
            "properties": {"command": {"type": "string"}},
            "required": ["command"],
        },
    }


def command(call: Call) -> str | None:
    """What a call does in the world; None where it is no call of ``act`` with a command."""
    said = call.arguments.get("command")
    if call.tool != "act" or not isinstance(said, str):
        return None
    return " ".join(said.split()) or None


def given_up(answer: str) -> str:
    """What an answer in the middle of the world is worth: as it was said, but never a victory."""
    return f"not {answer}" if normalise(answer) == WON else answer


def opening(
    shown: str,
    *,
    protocol: ActionProtocol,
    about: str,
    system: str | None,
    instructions: Literal["system", "user", "none"],
) -> tuple[Message, ...]:
    """The opening messages: a system message of one's own, instructions, and what is seen."""
    told = "" if instructions == "none" else protocol.system((schema(about),))
    before = "\n\n".join(filter(None, (system, told if instructions == "system" else "")))
    asked = "\n\n".join(filter(None, (told if instructions == "user" else "", shown)))
    return (*((Message("system", before),) if before else ()), Message("user", asked))


def act_calls(commands: Sequence[str]) -> list[Call]:
    """One call for each command."""
    return [Call("act", {"command": one}) for one in commands]
