"""A conversation of OpenAI messages as the prompt that the policy was trained to see."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agentrecipes.records import Action, Call, Message, ToolResult
from agentrecipes.rollout.chat import Labelled
from agentrecipes.serving.agent import Agent
from agentrecipes.serving.wire import ChatMessage, FunctionTool


class BadConversation(ValueError):
    """The messages cannot be put into a prompt; the text says which one and why."""


def prompt_of(
    agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[FunctionTool]
) -> Labelled:
    """The ids that come before the next turn: opening, turns so far, and what they drew.

    A question that stands alone is posed as the environment poses it. Tools of the caller are
    described in the protocol's words, in the system message.

    Raises:
        BadConversation: roles follow each other in a way that no episode has.
    """
    chat, protocol = agent.setting.chat, agent.protocol
    start = _opening_length(messages)
    ids, sources = chat.prompt(_opened(agent, messages[:start], tools))
    names: dict[str, Call] = {}
    for answer, replies in _rounds(messages[start:], start):
        text, calls = _written(agent, answer)
        names |= calls
        last = replies[-1].role if replies else ""
        role = "user" if last == "user" else protocol.observation_role
        shown = _shown(agent, replies, names)
        action = chat.action(text, close=last == "user")
        observed, labels = chat.observation(shown, role, ended=last == "user")
        ids, sources = (*ids, *action, *observed), (*sources, *sources[:1] * len(action), *labels)
    return ids, sources


def _opening_length(messages: Sequence[ChatMessage]) -> int:
    for index, message in enumerate(messages):
        if message.role == "assistant":
            return index
        if message.role == "tool":
            raise BadConversation(f"message {index} answers a tool call that nobody made")
    return len(messages)


def _opened(
    agent: Agent, messages: Sequence[ChatMessage], tools: Sequence[FunctionTool]
) -> Sequence[Message]:
    """The opening messages."""
    if not messages or messages[-1].role != "user":
        raise BadConversation("the first assistant message has no user message before it")
    alone = len(messages) == 1
    if alone and not tools:
        return agent.opening(messages[0].text)
    system = [message.text for message in messages if message.role in ("system", "developer")]
    if tools:
        system.append(agent.protocol.system([schema(tool) for tool in tools]))
    users = [Message("user", message.text) for message in messages if message.role == "user"]
    return [*([Message("system", "\n\n".join(system))] if system else []), *users]


def schema(tool: FunctionTool) -> Mapping[str, Any]:
    """A tool as instructions speak of it.

    Raises:
        BadConversation: it has no name.
    """
    said = tool.function
    if not isinstance(said.get("name"), str) or not said["name"]:
        raise BadConversation("a tool has no function.name")
    return {
        "name": said["name"],
        "description": str(said.get("description", "")),
        "parameters": said.get("parameters") or {"type": "object", "properties": {}},
    }


def _rounds(
    messages: Sequence[ChatMessage], start: int
) -> Iterator[tuple[ChatMessage, list[ChatMessage]]]:
    """Each assistant message with what followed it: results of its calls, or a user's message."""
    index = 0
    while index < len(messages):
        answer, replies = messages[index], []
        if answer.role != "assistant":
            raise BadConversation(f"message {start + index}: a {answer.role} message stands here")
        index += 1
        while index < len(messages) and messages[index].role != "assistant":
            replies.append(messages[index])
            index += 1
        roles = {reply.role for reply in replies}
        if not roles:
            raise BadConversation("the last message is the assistant's: there is nothing to answer")
        if roles not in ({"tool"}, {"user"}) or (roles == {"user"} and len(replies) > 1):
            raise BadConversation(
                f"message {start + index - 1}: after an assistant's message come the results of "
                "its calls, or one user message"
            )
        yield answer, replies


def _written(agent: Agent, message: ChatMessage) -> tuple[str, dict[str, Call]]:
    """An assistant's message in the protocol's own writing, and its calls by id."""
    calls = {
        made.id: Call(made.function.name, _arguments(made)) for made in message.tool_calls or ()
    }
    thought = message.reasoning_content or ""
    if calls:
        action = Action(thought or message.text, tuple(calls.values()))
    else:
        action = Action(thought, (), message.text)
    try:
        return agent.protocol.write(action), calls
    except ValueError as error:
        if calls:
            raise BadConversation(f"the protocol cannot write these calls: {error}") from None
        return message.text, {}  # an answer that it would not write: as it stands


def _arguments(made: Any) -> dict[str, Any]:
    try:
        found = json.loads(made.function.arguments or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise BadConversation(f"the arguments of the call {made.id!r} are no JSON object")
    return found


def _shown(agent: Agent, replies: Sequence[ChatMessage], names: Mapping[str, Call]) -> str:
    """What the policy is shown: results in the protocol's words, or what the user said."""
    if replies[-1].role == "user":
        return replies[-1].text
    results = []
    for reply in replies:
        call = names.get(reply.tool_call_id or "")
        if call is None:
            raise BadConversation(f"no call has the id {reply.tool_call_id!r}")
        results.append(ToolResult(call, reply.text))
    return agent.protocol.render(results)
