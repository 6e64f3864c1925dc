"""OpenAI's chat completions as records: what a request may say, and what an answer looks like."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentrecipes.records import Action
from agentrecipes.serving.agent import Drawn, Sampling

MOST_MESSAGES = 400
PIECE = 24  # characters of one streamed piece


class Wire(BaseModel):
    """Unknown fields are refused: a setting without effect would be a wrong answer."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Function(Wire):
    """A call as an assistant's message holds it."""

    name: str
    arguments: str  # JSON


class ToolCall(Wire):
    """One of an assistant's calls, or a piece of the first message that named it."""

    id: str
    function: Function
    type: Literal["function"] = "function"


class Part(Wire):
    """A piece of a message's content; only text is understood."""

    type: Literal["text"]
    text: str


class ChatMessage(Wire):
    """One message of the conversation so far."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[Part, ...] | None = None
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] | None = None
    tool_call_id: str | None = None
    reasoning_content: str | None = None  # an assistant's thought, as it was given
    refusal: None = None

    @property
    def text(self) -> str:
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        return "".join(part.text for part in self.content)


class FunctionTool(Wire):
    """A tool that the caller has."""

    function: dict[str, Any]  # name, description, parameters: a JSON schema
    type: Literal["function"] = "function"


class StreamOptions(Wire):
    """What a stream ends with."""

    include_usage: bool = False


class ChatRequest(Wire):
    """The body of ``POST /v1/chat/completions``."""

    model: str
    messages: Annotated[tuple[ChatMessage, ...], Field(min_length=1, max_length=MOST_MESSAGES)]
    tools: tuple[FunctionTool, ...] | None = None
    tool_choice: Literal["auto", "none"] = "auto"
    parallel_tool_calls: bool = True
    temperature: Annotated[float, Field(ge=0.0, le=2.0)] | None = None
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    seed: int | None = None
    stop: str | Annotated[tuple[str, ...], Field(max_length=4)] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: Literal[1] = 1
    user: str | None = None

    @property
    def sampling(self) -> Sampling:
        stop = (self.stop,) if isinstance(self.stop, str) else self.stop or ()
        most = self.max_completion_tokens or self.max_tokens
        return Sampling(self.temperature, self.top_p, most, seed=self.seed, stop=tuple(stop))


class Answer(Wire):
    """What the agent says, before it is put into one body or into a stream."""

    content: str | None
    reasoning: str
    calls: tuple[ToolCall, ...] = ()
    finish: Literal["stop", "length", "tool_calls"]
    prompt_tokens: int
    tokens: int


def answer_of(drawn: Drawn) -> Answer:
    """A turn as an assistant's message; what could not be read is shown as it was written."""
    action = drawn.action
    calls = tuple(
        ToolCall(
            id=f"call_{uuid.uuid4().hex[:24]}",
            function=Function(
                name=call.tool, arguments=json.dumps(dict(call.arguments), ensure_ascii=False)
            ),
        )
        for call in action.calls
    )
    finish: Literal["stop", "length", "tool_calls"] = "tool_calls" if calls else "stop"
    return Answer(
        content=_content(action, drawn.text),
        reasoning=action.thought if action.valid else "",
        calls=calls,
        finish="length" if drawn.cut else finish,
        prompt_tokens=drawn.prompt_tokens,
        tokens=drawn.tokens,
    )


def _content(action: Action, text: str) -> str | None:
    return action.answer if action.valid else text


def completion(answer: Answer, model: str) -> dict[str, Any]:
    """The one body of an answer that is not streamed."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.content}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = [call.model_dump() for call in answer.calls]
    choice = {"index": 0, "message": message, "finish_reason": answer.finish, "logprobs": None}
    head = _head(model, "chat.completion", _new_id())
    return {**head, "choices": [choice], "usage": usage(answer)}


class Stream:
    """The pieces of one streamed answer, as lines of server-sent events."""

    def __init__(self, model: str, *, with_usage: bool) -> None:
        self._model, self._with_usage = model, with_usage
        self._id = _new_id()

    def opening(self) -> str:
        """The first piece: whose message this is."""
        return self._event({"role": "assistant", "content": ""})

    def reasoning(self, text: str) -> Iterator[str]:
        """A thought, or what a tool did, while the answer is not there yet."""
        for piece in pieces(text):
            yield self._event({"reasoning_content": piece})

    def closing(self, answer: Answer) -> Iterator[str]:
        """Content, calls, why it ended, and the end of the stream."""
        for piece in pieces(answer.content or ""):
            yield self._event({"content": piece})
        for index, call in enumerate(answer.calls):
            named = {"name": call.function.name, "arguments": ""}
            first = {"index": index, "id": call.id, "type": "function", "function": named}
            yield self._event({"tool_calls": [first]})
            for piece in pieces(call.function.arguments):
                rest = {"index": index, "function": {"arguments": piece}}
                yield self._event({"tool_calls": [rest]})
        yield self._event({}, finish=answer.finish)
        if self._with_usage:
            head = _head(self._model, "chat.completion.chunk", self._id)
            yield _line({**head, "choices": [], "usage": usage(answer)})
        yield "data: [DONE]\n\n"

    def failure(self, message: str) -> str:
        """What a client is told when it is too late for a status."""
        return _line({"error": {"message": message, "type": "server_error"}})

    def _event(self, delta: dict[str, Any], finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return _line({**_head(self._model, "chat.completion.chunk", self._id), "choices": [choice]})


def usage(answer: Answer) -> dict[str, int]:
    """Tokens that went in and came out."""
    both = answer.prompt_tokens + answer.tokens
    return {
        "prompt_tokens": answer.prompt_tokens,
        "completion_tokens": answer.tokens,
        "total_tokens": both,
    }


def pieces(text: str) -> Sequence[str]:
    """A text in pieces for a stream."""
    return [text[start : start + PIECE] for start in range(0, len(text), PIECE)]


def _head(model: str, kind: str, name: str) -> dict[str, Any]:
    return {"id": name, "object": kind, "created": int(time.time()), "model": model}


def _new_id() -> str:
    return f"chatcmpl-{uuid.uuid4().hex}"


def _line(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
