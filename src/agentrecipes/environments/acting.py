"""What worlds that are acted in have in common: the tool ``act``, and how an episode ends."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from agentrecipes.environments.protocol import Outcome
from agentrecipes.numerics.answer_text import normalise
from agentrecipes.protocols.protocol import ActionProtocol
from agentrecipes.records import Action, Call, Message, ToolResult

NO_COMMAND = "only act takes calls here, with a command"
WON = "won"  # the gold answer of every world; only the world can give it
LOST = "lost"


class World(Protocol):
    """What is acted in, as it stands."""

    @property
    def over(self) -> bool: ...

    @property
    def won(self) -> bool: ...

    @property
    def points(self) -> float:
        """All that it gave so far."""
        ...


async def acted(
    action: Action,
    world: World,
    protocol: ActionProtocol,
    *,
    answered: Callable[[Call], Awaitable[ToolResult]],
) -> Outcome:
    """What the calls led to, one after the other; the end, if the world is over or given up."""
    if action.answer is not None:
        return Outcome(done=True, answer=_given_up(action.answer))
    before = world.points
    results = [await answered(call) for call in action.calls]
    return Outcome(
        observation=protocol.render(results),
        done=world.over,
        answer=(WON if world.won else LOST) if world.over else None,
        reward=world.points - before,
        calls=tuple(result.outcome for result in results),
    )


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


def command(call: Call, world: World) -> str | ToolResult:
    """What a call does in the world, or why it can do nothing."""
    said = call.arguments.get("command")
    words = said.split() if call.tool == "act" and isinstance(said, str) else ()
    if words and not world.over:
        return " ".join(words)
    return refused(call, "the game is over" if world.over else NO_COMMAND)


def refused(call: Call, why: str) -> ToolResult:
    """A call that the world never saw."""
    return ToolResult(call, error=why, outcome="wrong_arguments")


def _given_up(answer: str) -> str:
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
