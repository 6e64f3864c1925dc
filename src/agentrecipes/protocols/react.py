"""Thought, Action, Action Input, Observation: the labels of ReAct as chat agents write them.

A turn is ``Thought: t⏎Action: f⏎Action Input: {"a": 1}`` or ``Thought: t⏎Final Answer: a``; the
result comes as a user message ``Observation: …``. After ReAct (Yao et al. 2022,
https://arxiv.org/abs/2210.03629), which writes ``search[entity]``; a JSON object of arguments takes
the place of the brackets, so that any tool can be called.
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

LABELS = "Thought|Action Input|Action|Observation|Final Answer"
LABEL = re.compile(rf"^[ \t]*({LABELS}):", re.MULTILINE)
STOP = "\nObservation:"

NOTHING = "there is neither an Action nor a Final Answer"
SEVERAL = "there is more than one Action"
NO_INPUT = "an Action needs an Action Input after it"
NO_NAME = "the Action names no tool"
NO_JSON = "the Action Input is no JSON object"
ORDER = "labels are out of order"


@component("protocol")
class React(Component):
    """One call a turn. Two actions, or an action and a final answer, are an error; none is done.

    Sampling stops where the policy begins to write an observation of its own; that line is not
    read. Words without a label at the beginning count as the thought. A missing or second label, or
    an input that is no JSON object, makes the turn an error.
    """

    result_characters: Characters = 2048  # longest text shown of a result

    stop: ClassVar[tuple[str, ...]] = (STOP,)
    observation_role: ClassVar[Literal["user"]] = "user"

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions with one line a tool."""
        listed = pieces.schemas(tools)
        return "\n".join(
            [
                "Answer the question with the help of these tools:",
                *(f"- {pieces.signature(tool)}" for tool in listed),
                "",
                "Write each turn like this, one action a turn:",
                "Thought: what to do next",
                f"Action: the name of a tool, one of {', '.join(t['name'] for t in listed)}",
                "Action Input: its arguments as a JSON object in one line",
                "",
                "The next message then begins with Observation: and shows the result. When you "
                "know the answer, write:",
                "Thought: why this is the answer",
                "Final Answer: the answer, as short as can be",
            ]
        )

    def parse(self, text: str) -> Action:
        """The action that `text` says, or why it says none."""
        text = pieces.one_turn(text, self.stop).removesuffix(STOP)
        lead, *split = LABEL.split(text)  # words, label, words, label, words, ...
        labels, bodies = split[::2], [body.strip() for body in split[1::2]]
        thoughts = [lead.strip()]
        while labels[:1] == ["Thought"]:
            thoughts, labels, bodies = [*thoughts, bodies[0]], labels[1:], bodies[1:]
        thought = "\n".join(filter(None, thoughts))
        if labels == ["Final Answer"]:
            answer = bodies[0]
            return (
                Action(thought, (), answer) if answer else Action(thought, error=pieces.NO_ANSWER)
            )
        if labels != ["Action", "Action Input"]:
            return Action(thought=thought, error=_fault(labels))
        return _call(thought, bodies)

    def write(self, action: Action) -> str:
        """The text of a valid action.

        Raises:
            ValueError: the action has no written form.
        """
        head = f"Thought: {action.thought}\n" if action.thought else ""
        if action.answer is not None:
            body = f"Final Answer: {action.answer}"
        else:
            body = "\n".join(
                f"Action: {call.tool}\nAction Input: {pieces.as_json(dict(call.arguments))}"
                for call in action.calls
            )
        return pieces.checked(self, action, head + body)

    def render(self, results: Sequence[ToolResult]) -> str:
        """An observation for each result; labels inside lose their colon's place."""
        texts = [pieces.shown(result, self.result_characters) for result in results]
        safe = [LABEL.sub(lambda label: f"{label[1]} :", text) for text in texts]
        return "\n".join(f"Observation: {text}" for text in safe)

    def hint(self, error: str) -> str:
        """What was wrong and how to go on."""
        ways = "Thought, Action and Action Input, or Thought and Final Answer"
        return f"Observation: nothing was done: {error}. Write {ways}, each on its line."


def _fault(labels: Sequence[str]) -> str:
    """What is wrong with the labels that follow the thought."""
    if "Observation" in labels:
        return pieces.FORGED
    if "Action" in labels and "Final Answer" in labels:
        return pieces.MIXED
    if labels.count("Action") > 1:
        return SEVERAL
    if labels == ["Action"]:
        return NO_INPUT
    return ORDER if labels else NOTHING


def _call(thought: str, bodies: Sequence[str]) -> Action:
    name, written = bodies
    if not name or "\n" in name:
        return Action(thought=thought, error=NO_NAME)
    try:
        arguments = pieces.json_object(written)
    except ValueError:
        return Action(thought=thought, error=NO_JSON)
    return Action(thought, (Call(name, arguments),))
