"""JSON calls between <tool_call> tags, as Agent-R1 and the chat templates of Qwen write them.

A call is ``<tool_call>⏎{"name": "f", "arguments": {"a": 1}}⏎</tool_call>`` after an optional
``<think> t </think>``; its result is a user message ``<tool_response>⏎ … ⏎</tool_response>``. The
answer is ``<answer> a </answer>``. After Agent-R1 (Cheng et al. 2025,
https://arxiv.org/abs/2511.14460), whose step-level version drops malformed JSON silently; here it
is an error that is answered.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.protocols import pieces
from agentrecipes.protocols.pieces import Answers, Characters
from agentrecipes.protocols.protocol import Described
from agentrecipes.records import Action, Call, ToolResult

TAG = re.compile(r"(</?(?:tool_call|answer)>)")
RESPONSE = re.compile(r"</?tool_response>")
TAGS = re.compile(r"</?(?:think|tool_call|tool_response|answer)>")

NOTHING = "no tool call or answer was closed"
NO_JSON = "a tool call is no JSON object"
NO_NAME = "a tool call has no name"
NO_ARGUMENTS = "a tool call has no object of arguments"


@component("protocol")
class Hermes(Component):
    """Several closed calls in one turn are carried out side by side, up to `calls_per_turn`.

    With one call a turn, sampling stops at its closing tag; with several, the policy ends its
    message itself. What follows a closed answer is not read. A call together with an answer, tags
    that are not paired, bad JSON, a missing name or arguments make the whole turn an error: none of
    its calls is carried out. Words outside a thought are the thought if there is no other.
    """

    calls_per_turn: Annotated[int, Field(ge=1)] = 1
    excess: Literal["error", "truncate"] = "error"  # of calls: refuse them all, or drop the last
    answers: Answers = "tagged"  # <answer>, or plain: any message without a call, as in Qwen's use
    result_characters: Characters = 2048  # longest text shown of one result

    observation_role: ClassVar[Literal["user"]] = "user"

    @property
    def stop(self) -> tuple[str, ...]:
        """The closing tags that end a turn."""
        call = ("</tool_call>",) if self.calls_per_turn == 1 else ()
        return (*call, "</answer>") if self.answers == "tagged" else call

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions with the tools as JSON, in the places that Qwen's templates give them."""
        listed = [pieces.as_json({"type": "function", "function": t}) for t in _plain(tools)]
        most = f"up to {self.calls_per_turn} times" if self.calls_per_turn > 1 else "once"
        return "\n".join(
            [
                "# Tools",
                "",
                "You can call these functions; each line describes one:",
                "<tools>",
                *listed,
                "</tools>",
                "",
                "Think inside <think> and </think>. To call a function, write a JSON object with "
                f"its name and its arguments inside these tags, {most} a turn:",
                "<tool_call>",
                '{"name": <name>, "arguments": <object>}',
                "</tool_call>",
                "What it returned is shown between <tool_response> and </tool_response>.",
                pieces.answering(self.answers),
            ]
        )

    def parse(self, text: str) -> Action:
        """The action that `text` says, or why it says none."""
        thought, rest = pieces.split_thought(pieces.one_turn(text, self.stop))
        if RESPONSE.search(rest):
            return Action(thought=thought, error=pieces.FORGED)
        if self.answers == "plain" and "tool_call>" not in rest:
            answer = rest.strip()
            return Action(thought, (), answer) if answer else Action(thought, error=NOTHING)
        split = TAG.split(rest)  # text, tag, text, ..., text
        texts, tags = split[::2], split[1::2]
        thought = thought or texts[0].strip()
        if not tags or (len(tags) == 1 and tags[0][1] != "/"):
            return Action(thought=thought, error=NOTHING)
        if tags == ["<answer>", "</answer>"]:
            answer = texts[1].strip()
            return Action(thought, (), answer) if answer else _error(thought, pieces.NO_ANSWER)
        if tags != ["<tool_call>", "</tool_call>"] * (len(tags) // 2):
            both = {"</tool_call>", "</answer>"} <= set(tags)
            return Action(thought=thought, error=pieces.MIXED if both else pieces.UNPAIRED)
        return self._calls(thought, texts[1::2])

    def _calls(self, thought: str, bodies: Sequence[str]) -> Action:
        if len(bodies) > self.calls_per_turn and self.excess == "error":
            return _error(thought, pieces.TOO_MANY)
        calls = []
        for body in bodies[: self.calls_per_turn]:
            call = _call(body)
            if isinstance(call, str):
                return _error(thought, call)
            calls.append(call)
        return Action(thought, tuple(calls))

    def write(self, action: Action) -> str:
        """The text of a valid action.

        Raises:
            ValueError: the action has no written form.
        """
        if action.answer is not None:
            body = pieces.answer(action.answer, self.answers)
        else:
            said = [{"name": call.tool, "arguments": dict(call.arguments)} for call in action.calls]
            body = "\n".join(f"<tool_call>\n{pieces.as_json(one)}\n</tool_call>" for one in said)
        return pieces.checked(self, action, pieces.thinking(action.thought) + body)

    def render(self, results: Sequence[ToolResult]) -> str:
        """A block for each result, in the order of the calls; each is closed, however long.

        Tags inside are taken apart, so that a result can neither close its block nor speak for the
        policy.
        """
        texts = [pieces.shown(result, self.result_characters) for result in results]
        safe = [pieces.untagged(text, TAGS) for text in texts]
        return "\n".join(f"<tool_response>\n{text}\n</tool_response>" for text in safe)

    def hint(self, error: str) -> str:
        """What was wrong and how to go on."""
        call = '<tool_call>{"name": …, "arguments": {…}}</tool_call>'
        answer = "<answer> … </answer>" if self.answers == "tagged" else "the answer alone"
        return f"Nothing was done: {error}. Write {call} or {answer}."


def _call(body: str) -> Call | str:
    """The call that a body says, or what is wrong with it."""
    try:
        said = pieces.json_object(body)
    except ValueError:
        return NO_JSON
    name, arguments = said.get("name"), said.get("arguments")
    if not isinstance(name, str) or not name.strip():
        return NO_NAME
    return Call(name, arguments) if isinstance(arguments, dict) else NO_ARGUMENTS


def _error(thought: str, error: str) -> Action:
    return Action(thought=thought, error=error)


def _plain(tools: Sequence[Described]) -> list[dict[str, object]]:
    return [dict(tool) for tool in pieces.schemas(tools)]
