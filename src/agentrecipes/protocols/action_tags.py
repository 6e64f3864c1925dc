"""One command a turn between <action> tags: how agents play text games.

A turn is ``<think> t </think>⏎<action> go east </action>``; the command is the argument ``command``
of the tool ``act``. What the world answers comes as a user message as it is. The form is that of
verl-agent's prompts (GiGPO: Feng et al. 2025, https://arxiv.org/abs/2505.10978). In most worlds the
world says when it is over; ``<answer> a </answer>`` is for those that ask something.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.protocols import pieces
from agentrecipes.protocols.pieces import Characters
from agentrecipes.protocols.protocol import Described
from agentrecipes.records import Action, Call, ToolResult

ACTION = re.compile(r"<action>(.*?)</action>", re.DOTALL)
TAGS = re.compile(r"</?(?:think|action|answer)>")

NOTHING = "no action was closed"
EMPTY = "the action is empty"
NESTED = "a tag stands inside the action"


@component("protocol")
class ActionTags(Component):
    """One action a turn: what follows the first that is closed is not read.

    Words before the action are the thought if there is no other. An unclosed or empty action, or
    one with a tag inside, is an error.
    """

    result_characters: Characters = 4096  # longest text shown of what the world answers

    stop: ClassVar[tuple[str, ...]] = ("</action>", "</answer>")
    observation_role: ClassVar[Literal["user"]] = "user"
    only_tool: ClassVar[str] = "act"

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions for a model that has not been taught this protocol."""
        return (
            "Each turn, think inside <think> and </think>, then write one action in this form:\n"
            "<action> the action </action>\n"
            "The next message shows what it led to."
        )

    def parse(self, text: str) -> Action:
        """The action that `text` says, or why it says none."""
        thought, rest = pieces.split_thought(pieces.one_turn(text, self.stop))
        written = ACTION.search(rest)
        before = rest[: written.start()] if written else rest
        answers = pieces.ANSWER.search(before) is not None
        if written is None and answers:
            return pieces.answered(thought, rest, NOTHING)
        thought = thought or before.strip()
        if written is None or answers:
            return Action(thought=thought, error=pieces.MIXED if answers else NOTHING)
        command = written[1].strip()
        if TAGS.search(command):
            return Action(thought=thought, error=NESTED)
        try:
            arguments = pieces.plain_arguments({"command": command})
        except ValueError:  # half a character
            return Action(thought=thought, error=NOTHING)
        return (
            Action(thought, (Call("act", arguments),)) if command else Action(thought, error=EMPTY)
        )

    def write(self, action: Action) -> str:
        """The text of a valid action.

        Raises:
            ValueError: the action has no written form.
        """
        if action.answer is not None:
            text = pieces.thinking(action.thought) + pieces.answer(action.answer, "tagged")
            return pieces.checked(self, action, text)
        commands = [str(call.arguments.get("command", "")) for call in action.calls]
        body = "\n".join(f"<action> {command} </action>" for command in commands)
        return pieces.checked(self, action, pieces.thinking(action.thought) + body)

    def render(self, results: Sequence[ToolResult]) -> str:
        """What the world answered; tags inside are taken apart."""
        texts = [pieces.shown(result, self.result_characters) for result in results]
        return pieces.untagged("\n".join(texts), TAGS)

    def hint(self, error: str) -> str:
        """What was wrong and how to go on."""
        return f"Nothing was done: {error}. Write <action> the action </action>."
