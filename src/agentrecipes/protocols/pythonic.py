"""Calls as a Python list, ``[f(a=1), g(b="x")]``: the form of BFCL, FunReason and Llama 3.2.

The list begins a line, after an optional ``<think> t </think>``; it is read with `ast`, and nothing
in it is ever run. Results come as a user message; the answer is ``<answer> a </answer>``. After
FunReason (Hao et al. 2025, https://arxiv.org/abs/2505.20192), whose calls are imitated and never
carried out.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from agentrecipes.components import Component, component
from agentrecipes.protocols import pieces
from agentrecipes.protocols.pieces import Answers, Characters
from agentrecipes.protocols.protocol import Described
from agentrecipes.records import Action, Call, ToolResult

LIST = re.compile(r"^[ \t]*\[", re.MULTILINE)
TAGS = re.compile(r"</?(?:think|answer)>")
LONGEST = 20_000  # characters of a list that are parsed; Python's parser has limits of its own

NOTHING = "no list of calls begins a line, and no answer was closed"
NO_LIST = "the calls are no Python list"
NO_CALL = "the list holds no call"
NOT_A_CALL = "the list holds something that is no call of a name"
NO_KEYWORD = "arguments are written name=value, each name once"
NOT_PLAIN = "an argument is no plain text, number, truth value, None, list or dict"


@component("protocol")
class Pythonic(Component):
    """All calls of the list are carried out side by side, up to `calls_per_turn`.

    The list ends the turn: any word after it, an argument without a name, or a value that is no
    literal makes the whole turn an error, and none of its calls is carried out. So does an answer
    beside a list; what follows a closed answer is not read. Words before the list are the thought
    if there is no other. An empty list is an error: who has nothing to call answers.
    """

    calls_per_turn: Annotated[int, Field(ge=1)] = 4
    excess: Literal["error", "truncate"] = "error"  # of calls: refuse them all, or drop the last
    answers: Answers = "tagged"  # <answer>, or plain: any message without a list
    result_characters: Characters = 2048  # longest text shown of one result
    tools: Literal["signature", "json"] = "signature"  # how each is described, in a line

    observation_role: ClassVar[Literal["user"]] = "user"

    @property
    def stop(self) -> tuple[str, ...]:
        """A closed answer ends a turn; a list of calls ends with the message."""
        return ("</answer>",) if self.answers == "tagged" else ()

    def system(self, tools: Sequence[Described]) -> str:
        """Instructions with one line a tool: its signature, or all of its schema as JSON."""
        describe = pieces.signature if self.tools == "signature" else pieces.described
        several = f", up to {self.calls_per_turn} calls" if self.calls_per_turn > 1 else ""
        return "\n".join(
            [
                "Answer the question with the help of these functions:",
                *(f"- {describe(tool)}" for tool in pieces.schemas(tools)),
                "",
                "Think inside <think> and </think>. To call functions, end your message with a "
                f'Python list in this form{several}: [name(argument=1), other(argument="text")]',
                "What each call returned is shown in the next message.",
                pieces.answering(self.answers),
            ]
        )

    def parse(self, text: str) -> Action:
        """The action that `text` says, or why it says none."""
        thought, rest = pieces.split_thought(pieces.one_turn(text, self.stop))
        listed = LIST.search(rest)
        tagged = pieces.ANSWER.search(rest) if self.answers == "tagged" else None
        if listed is not None and (tagged is None or listed.start() < tagged.start()):
            thought = thought or rest[: listed.start()].strip()
            return self._calls(thought, rest[listed.start() :].strip())
        if tagged is not None:
            return pieces.answered(thought, rest, NOTHING)
        answer = rest.strip()
        if self.answers == "tagged" or not answer:
            return Action(thought=thought or answer, error=NOTHING)
        return Action(thought, (), answer)

    def _calls(self, thought: str, listed: str) -> Action:
        try:
            calls = read_calls(listed)
        except ValueError as error:
            both = self.answers == "tagged" and pieces.ANSWER.search(listed.rpartition("]")[2])
            return Action(thought=thought, error=pieces.MIXED if both else str(error))
        if len(calls) > self.calls_per_turn and self.excess == "error":
            return Action(thought=thought, error=pieces.TOO_MANY)
        return Action(thought, calls[: self.calls_per_turn])

    def write(self, action: Action) -> str:
        """The text of a valid action.

        Raises:
            ValueError: the action has no written form.
        """
        if action.answer is not None:
            body = pieces.answer(action.answer, self.answers)
        else:
            body = written(action.calls)
        return pieces.checked(self, action, pieces.thinking(action.thought) + body)

    def render(self, results: Sequence[ToolResult]) -> str:
        """``name: result`` for each call and in their order; tags inside are taken apart."""
        lines = [f"{r.call.tool}: {pieces.shown(r, self.result_characters)}" for r in results]
        return pieces.untagged("\n".join(lines), TAGS)

    def hint(self, error: str) -> str:
        """What was wrong and how to go on."""
        answer = "<answer> … </answer>" if self.answers == "tagged" else "the answer alone"
        return f"Nothing was done: {error}. Write [name(argument=value)] or {answer}."


def written(calls: Sequence[Call]) -> str:
    """Calls as a Python list."""
    return f"[{', '.join(map(_written, calls))}]"


def read_calls(text: str) -> tuple[Call, ...]:
    """The calls of a Python list.

    Raises:
        ValueError: it is no list of calls with literal arguments; the message says why.
    """
    if len(text) > LONGEST:
        raise ValueError(NO_LIST)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what the policy writes, such as "\d"
            tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ValueError(NO_LIST) from None
    if not isinstance(tree, ast.List):
        raise ValueError(NO_LIST)
    if not tree.elts:
        raise ValueError(NO_CALL)
    return tuple(_call(node) for node in tree.elts)


def _call(node: ast.expr) -> Call:
    if not isinstance(node, ast.Call) or (name := _name(node.func)) is None:
        raise ValueError(NOT_A_CALL)
    names = [keyword.arg for keyword in node.keywords]
    if node.args or None in names or len(set(names)) != len(names):
        raise ValueError(NO_KEYWORD)
    try:
        arguments = {str(k.arg): _literal(k.value) for k in node.keywords}
        return Call(name, pieces.plain_arguments(arguments))
    except (ValueError, TypeError, RecursionError):
        raise ValueError(NOT_PLAIN) from None


def _name(node: ast.expr) -> str | None:
    """``math.sqrt`` as text; None for what is not a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def _literal(node: ast.expr) -> Any:
    """The value of a literal, tuples as lists."""
    match node:
        case ast.Constant(value=str() | bool() | int() | float() | None as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value if type(value) is not bool else _no_literal()
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return [_literal(item) for item in items]
        case ast.Dict(keys=keys, values=values):
            names = [_literal(key) if key is not None else None for key in keys]
            if not all(isinstance(name, str) for name in names) or len({*names}) != len(names):
                raise ValueError(NOT_PLAIN)
            return dict(zip(names, map(_literal, values), strict=True))
    return _no_literal()


def _no_literal() -> Any:
    raise ValueError(NOT_PLAIN)


def _written(call: Call) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in call.arguments.items())
    return f"{call.tool}({arguments})"
