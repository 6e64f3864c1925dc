"""One block of Python a turn: CodeAct, where code is the action.

A turn is ``<think> t </think>`` and a block between lines of three backticks, the first of them
with the word python; its text is the argument ``code`` of the tool ``python``. What it printed
comes as a user message that begins with ``Output:``; the answer is ``<answer> a </answer>``. After
CodeAct (Wang et al. 2024, https://arxiv.org/abs/2402.01030), which writes <execute> for the fence.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar, Literal

from agentrecipes.components import Component, component
from agentrecipes.protocols import pieces
from agentrecipes.protocols.pieces import Answers, Characters
from agentrecipes.protocols.protocol import Described
from agentrecipes.records import Action, Call, ToolResult

BLOCK = re.compile(r"^```(?:python|py)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
OPEN = re.compile(r"^```(?:python|py)[ \t]*$", re.MULTILINE)
TAGS = re.compile(r"</?(?:think|answer)>")
FENCE = "\n```\n"

NOTHING = "no block of python and no answer was closed"
NO_CODE = "the block of python is empty"
NO_TEXT = "the code holds half a character"


@component("protocol")
class Code(Component):
    """One block a turn: what follows the first closed block, or a closed answer, is not read.

    Sampling stops at a line that closes a block. The code is not looked at here: what is wrong with
    it is the tool's business. An unclosed or empty block, or one of another language, is an error;
    an answer before a block is an error too. Words outside a thought are the thought if there is no
    other.
    """

    answers: Answers = "tagged"  # <answer>, or plain: any message without a block
    result_characters: Characters = 2048  # longest text shown of a result

    observation_role: ClassVar[Literal["user"]] = "user"
    only_tool: ClassVar[str] = "python"

    @property
    def stop(self) -> tuple[str, ...]:
        """The line that closes a block, and the tag that closes an answer."""
        return (FENCE, "</answer>") if self.answers == "tagged" else (FENCE,)

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions; what can be imported or called is for the tool's description to say."""
        about = [
            str(tool["description"]) for tool in pieces.schemas(tools) if "description" in tool
        ]
        return "\n".join(
            [
                "Answer the question by writing Python; the next message shows what it prints.",
                *about,
                "Think inside <think> and </think>, then write one block of code in this form:",
                "```python",
                "print(...)",
                "```",
                pieces.answering(self.answers),
            ]
        )

    def parse(self, text: str) -> Action:
        """The action that `text` says, or why it says none."""
        thought, rest = pieces.split_thought(pieces.one_turn(text, self.stop))
        block = BLOCK.search(rest)
        before = rest[: block.start()] if block else rest
        answered = self.answers == "tagged" and pieces.ANSWER.search(before) is not None
        if block is not None:
            thought = thought or before.strip()
            return Action(thought=thought, error=pieces.MIXED) if answered else _run(thought, block)
        if answered:
            return pieces.answered(thought, rest, NOTHING)
        answer = rest.strip()
        if self.answers == "tagged" or not answer or OPEN.search(rest):
            return Action(thought=thought or answer, error=NOTHING)
        return Action(thought, (), answer)

    def write(self, action: Action) -> str:
        """The text of a valid action.

        Raises:
            ValueError: the action has no written form.
        """
        if action.answer is not None:
            body = pieces.answer(action.answer, self.answers)
        else:
            codes = [str(call.arguments.get("code", "")) for call in action.calls]
            body = "\n".join(f"```python\n{code}\n```" for code in codes)
        return pieces.checked(self, action, pieces.thinking(action.thought) + body)

    def render(self, results: Sequence[ToolResult]) -> str:
        """What was printed; tags and fences inside are taken apart."""
        texts = [pieces.shown(result, self.result_characters) for result in results]
        safe = [pieces.untagged(text, TAGS).replace("```", "'''") for text in texts]
        return "\n".join(f"Output:\n{text}" for text in safe)

    def hint(self, error: str) -> str:
        """What was wrong and how to go on."""
        answer = "<answer> … </answer>" if self.answers == "tagged" else "the answer alone"
        return f"Nothing was run: {error}. Write one block that begins with ```python, or {answer}."


def _run(thought: str, block: re.Match[str]) -> Action:
    code = block[1].removesuffix("\n")
    if not code.strip():
        return Action(thought=thought, error=NO_CODE)
    try:
        arguments = pieces.plain_arguments({"code": code})
    except ValueError:
        return Action(thought=thought, error=NO_TEXT)
    return Action(thought, (Call("python", arguments),))
