"""Which of its turns a policy goes on seeing: all of them, the latest, or a stack that it edits.

A turn, an action with what it drew, is the unit: it is shown whole and as it was sampled, or not at
all, so that no edit tokenises anything again. Where a turn is no longer shown, the next prompt
starts a new row (law 2). The stack is that of TC-RAG (Jiang et al. 2025,
https://arxiv.org/abs/2408.09199) and Agentic-RAG-R1 (2025,
https://github.com/jiangxinke/Agentic-RAG-R1), which hides by an attention mask what is taken off.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.components import Fields
from agentrecipes.environments.protocol import Agent
from agentrecipes.errors import Problem
from agentrecipes.records import Action, Call, ToolResult

BACKTRACK, SUMMARY = "backtrack", "summary"
MEMORY = (BACKTRACK, SUMMARY)  # calls that edit the context; no tool is asked
ALONE = "backtrack and summary stand alone in a turn"
BOTTOM = "There is nothing to take back."
TOOLS: tuple[Mapping[str, Any], ...] = (
    {
        "name": BACKTRACK,
        "description": "Take back the last step: it is no longer shown.",
        "parameters": {"type": "object", "properties": {}},
    },
    {
        "name": SUMMARY,
        "description": "Replace the steps so far by what they taught.",
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "what is to be remembered"}},
            "required": ["text"],
        },
    },
)
DRAWN = 0.2  # how often a random agent edits its context


class Context(Fields):
    """What the next prompt shows after the opening."""

    policy: Literal["concatenate", "window", "stack"] = "concatenate"
    turns: Annotated[int, Field(ge=1)] | None = None  # of a window: so many, the latest
    summary: Literal["all", "last"] = "all"  # of a stack: what a summary stands for
    note: Annotated[str, Field(min_length=1)] = (
        "The last step is taken back. Rethink."  # what a backtrack draws
    )

    @property
    def edits(self) -> bool:
        """Whether a prompt may show less than the one before."""
        return self.policy != "concatenate"

    @property
    def tools(self) -> Sequence[Mapping[str, Any]]:
        """The calls that edit the context, as instructions speak of them; none without a stack."""
        return TOOLS if self.policy == "stack" else ()

    def shown(self, actions: Sequence[Action]) -> tuple[int, ...]:
        """The turns, from 0, that the prompt after `actions` shows, in order.

        Example: after a search, a search and a backtrack a stack shows ``(0, 2)``: the backtrack
        is a unit itself, with its note, and a second one would take that back.
        """
        if self.policy == "window":
            return tuple(range(len(actions))[-(self.turns or 1) :])
        stack: list[int] = []
        for number, action in enumerate(actions):
            call = memory_call(action) if self.policy == "stack" else None
            if call is not None:
                whole = call.tool == SUMMARY and self.summary == "all"
                stack = [] if whole else stack[:-1]
            stack.append(number)
        return tuple(stack)

    def results(self, action: Action, before: Sequence[Action]) -> list[ToolResult]:
        """What the memory calls of `action` draw; `before` are the actions of the turns before."""
        if len(action.calls) > 1:
            return [ToolResult(call, error=ALONE) for call in action.calls]
        [call] = action.calls
        if call.tool == SUMMARY:
            return [ToolResult(call)]
        return [ToolResult(call, self.note if self.shown(before) else BOTTOM)]


CONCATENATE = Context()


def context_of(environment: object) -> Context:
    """The environment's policy; all turns are shown where it has no such field."""
    found: Context = getattr(environment, "context", CONCATENATE)
    return found


def memory_call(action: Action) -> Call | None:
    """The call by which `action` edits its context; it is the turn's only one."""
    if len(action.calls) == 1 and action.calls[0].tool in MEMORY:
        return action.calls[0]
    return None


def remembers(environment: Any) -> bool:
    """Whether backtrack and summary are calls of the context, and not of some tool."""
    return context_of(environment).policy == "stack" or getattr(
        environment.protocol, "memory", False
    )


def context_problems(environment: Any) -> Iterable[Problem]:
    """Fields without effect, and a stack whose protocol has no words for its edits."""
    context, protocol = context_of(environment), environment.protocol
    if context.policy == "window" and context.turns is None:
        found, hint = "a window shows a number of turns", "Write how many, such as `turns: 3`."
        yield Problem("missing_key", "context.turns", found, hint)
    if context.policy != "window" and context.turns is not None:
        found, hint = "only a window counts turns", "Write `policy: window`, or leave it out."
        yield Problem("no_effect", "context.turns", found, hint)
    if context.policy != "stack" and context.summary != "all":
        found, hint = "only a stack has summaries", "Write `policy: stack`, or leave it out."
        yield Problem("no_effect", "context.summary", found, hint)
    speechless = getattr(protocol, "only_tool", None) and not getattr(protocol, "memory", False)
    if context.policy == "stack" and speechless:
        yield Problem(
            code="stack_without_words",
            path="context.policy",
            message=f"the protocol can call {protocol.only_tool!r} alone, so nothing would ever be "
            "taken off the stack",
            suggestion="Write `protocol: stack`, or a protocol for any tool, such as hermes.",
        )


def wandering(environment: Any, agent: Agent, random: Random) -> Agent:
    """`agent`, which now and then edits its context where the environment has a stack."""
    if context_of(environment).policy != "stack":
        return agent
    edits = (Call(BACKTRACK, {}), Call(SUMMARY, {"text": "nothing yet"}))

    def play(observation: str | None) -> Action:
        if random.random() < DRAWN:
            return Action("again", (edits[random.random() < 0.5],))
        return agent(observation)

    return play
