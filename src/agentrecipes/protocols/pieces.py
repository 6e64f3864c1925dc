"""What protocols read and show alike: thoughts, arguments, results, descriptions of tools."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from agentrecipes.protocols.protocol import ActionProtocol, Described
from agentrecipes.records import Action, ToolResult

Answers = Literal["tagged", "plain"]  # between <answer> tags, or any message without a call
Characters = Annotated[int, Field(ge=1)]

THINK = re.compile(r"</?think>")
ANSWER = re.compile(r"(</?answer>)")
FORGED = "only the environment writes results"
MIXED = "calls and an answer do not go together"
NO_ANSWER = "the answer is empty"
UNPAIRED = "tags are not paired"
TOO_MANY = "too many calls in one turn"


def one_turn(text: str, stops: Iterable[str]) -> str:
    """`text` to the end of the first stop string in it; sampling would have ended there."""
    ends = [place + len(stop) for stop in stops if (place := text.find(stop)) >= 0]
    return text[: min(ends)] if ends else text


def split_thought(text: str) -> tuple[str, str]:
    """The thought before the first ``</think>``, and what follows it without further think tags.

    ``<think>`` may be missing: some chat templates write it for the model.
    """
    head, closed, rest = text.partition("</think>")
    if not closed:
        return "", THINK.sub("", text)
    return THINK.sub("", head).strip(), THINK.sub("", rest)


def answered(thought: str, rest: str, nothing: str) -> Action:
    """The answer between the tags in `rest`; `nothing` is the error of one that is not closed."""
    before, *split = ANSWER.split(rest)  # text, tag, text, tag, text, ...
    thought = thought or before.strip()
    if split[::2] != ["<answer>", "</answer>"]:
        return Action(thought=thought, error=nothing if split[::2] == ["<answer>"] else UNPAIRED)
    answer = split[1].strip()
    return Action(thought, (), answer) if answer else Action(thought, error=NO_ANSWER)


def answer(text: str, answers: Answers) -> str:
    """How an answer is written."""
    return f"<answer> {text} </answer>" if answers == "tagged" else text


def thinking(thought: str) -> str:
    """How a thought is written; nothing for an empty one."""
    return f"<think> {thought} </think>\n" if thought else ""


def checked(protocol: ActionProtocol, action: Action, text: str) -> str:
    """`text`, which must be read back as `action`.

    Raises:
        ValueError: it is read as something else: the action has no written form.
    """
    if protocol.parse(text) != action:
        raise ValueError(f"{type(protocol).__name__} cannot write {action!r}")
    return text


def json_object(text: str) -> dict[str, Any]:
    """The JSON object that `text` is.

    Raises:
        ValueError: it is none, says a key twice, or holds what JSON or UTF-8 lack.
    """
    try:
        value = json.loads(text, object_pairs_hook=_once, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(value, dict):
        raise ValueError("no JSON object")
    return plain_arguments(value)


def plain_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """`arguments` as they are, if they can be written as JSON in UTF-8.

    Raises:
        ValueError: a number is infinite or too long, or a text holds half a surrogate pair.
        TypeError: a value is neither text, number, truth value, null, list nor mapping.
    """
    json.dumps(arguments, allow_nan=False, ensure_ascii=False).encode()
    return arguments


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key twice")
    return made


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def as_json(value: Any) -> str:
    """Plain data as JSON in one line, letters as they are."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def shown(result: ToolResult, characters: int) -> str:
    """What a result says, cut to `characters`: its error, its text, or its passages numbered."""
    if result.error is not None:
        text = f"error: {result.error}"
    elif result.text or not result.passages:
        text = result.text
    else:
        text = "\n".join(
            f"Doc {number} (Title: {passage.title}) {passage.text}"
            if passage.title
            else f"Doc {number} {passage.text}"
            for number, passage in enumerate(result.passages, start=1)
        )
    return text if len(text) <= characters else text[:characters].rstrip() + " …"


def untagged(text: str, tags: re.Pattern[str]) -> str:
    """`text` with the tags in it taken apart: ``<answer>`` becomes ``[answer]``."""
    return tags.sub(lambda match: f"[{match[0][1:-1]}]", text)


def schemas(tools: Sequence[Described]) -> list[Mapping[str, Any]]:
    """Every tool as a mapping; one that is only named has nothing but its name."""
    return [{"name": tool} if isinstance(tool, str) else tool for tool in tools]


def signature(tool: Mapping[str, Any]) -> str:
    """A line of instructions: ``price(item: string, count: integer = 1): What it costs.``."""
    parameters = tool.get("parameters", {})
    needed = parameters.get("required", ())
    arguments = []
    for name, about in parameters.get("properties", {}).items():
        kind = about.get("type", "any")
        kind = " or ".join(kind) if isinstance(kind, list) else kind
        kind = " | ".join(as_json(option) for option in about["enum"]) if "enum" in about else kind
        default = "" if name in needed else f" = {as_json(about.get('default'))}"
        arguments.append(f"{name}: {kind}{default}")
    listed = f"({', '.join(arguments)})" if "parameters" in tool else ""
    about_it = tool.get("description", "")
    return f"{tool['name']}{listed}: {about_it}" if about_it else f"{tool['name']}{listed}"


def described(tool: Mapping[str, Any]) -> str:
    """All of a tool's schema in a line."""
    return as_json(dict(tool))


def answering(answers: Answers) -> str:
    """The line of instructions that says how to answer."""
    if answers == "tagged":
        return "When you know the answer, write <answer> answer </answer>, as short as can be."
    return "When you know the answer, write it without a call, as short as can be."
