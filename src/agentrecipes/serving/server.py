"""An OpenAI-style server for a run's agent: ``/v1/chat/completions`` and ``/v1/models``.

A request that brings tools gets the policy's next turn, its calls to be carried out by the caller.
One without tools gets the whole agent: it works with its own tools, and its steps are streamed as
``reasoning_content`` before the answer.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from agentrecipes.errors import AgentRecipesError, MissingExtra
from agentrecipes.records import Stop, Trajectory, Turn
from agentrecipes.serving.agent import Agent
from agentrecipes.serving.conversation import BadConversation, prompt_of
from agentrecipes.serving.wire import Answer, ChatRequest, Stream, answer_of, completion

Told = Callable[[Turn], None]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server gives, and to whom."""

    key: str | None = None  # asked for as ``Authorization: Bearer KEY``
    waiting: int = 256  # requests at once; more are told to come back (429)
    seconds: float = 300.0  # of one request
    bytes: int = 4 << 20  # of one request's body


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message

    @property
    def body(self) -> dict[str, Any]:
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {"error": {"message": self.message, "type": kind, "code": self.status}}


class Desk:
    """Answers requests with one agent, within limits."""

    def __init__(self, agent: Agent, limits: Limits) -> None:
        self.agent, self.limits = agent, limits
        self._busy = 0

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place among the requests that are being answered.

        Raises:
            Refused: there is none.
        """
        self.require_room()
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1

    def require_room(self) -> None:
        """Look for a place.

        Raises:
            Refused: all are taken.
        """
        if self._busy >= self.limits.waiting:
            raise Refused(429, f"{self._busy} requests are being answered; come back later")

    def admit(self, header: str | None) -> None:
        """Ask for the key.

        Raises:
            Refused: it is missing or wrong.
        """
        key = self.limits.key
        given = (header or "").removeprefix("Bearer ").strip()
        if key is not None and not secrets.compare_digest(given.encode(), key.encode()):
            raise Refused(401, "the key is missing or wrong")

    async def answer(self, request: ChatRequest, told: Told) -> Answer:
        """The agent's answer; `told` hears each turn of an episode of its own.

        Raises:
            Refused: the conversation makes no prompt, the engine failed, or it took too long.
        """
        try:
            async with asyncio.timeout(self.limits.seconds):
                return await self._answer(request, told)
        except BadConversation as error:
            raise Refused(400, str(error)) from None
        except TimeoutError:
            raise Refused(504, f"no answer within {self.limits.seconds:g} s") from None
        except AgentRecipesError as error:
            raise Refused(500, str(error)) from None

    async def _answer(self, request: ChatRequest, told: Told) -> Answer:
        if request.model != self.agent.name:
            raise Refused(404, f"there is no model {request.model!r}; this is {self.agent.name!r}")
        asked = request.messages
        if request.tools is None and len(asked) == 1 and asked[0].role == "user":
            found = await self.agent.ask(asked[0].text, request.sampling, on_turn=told)
            return _played(found)
        tools = () if request.tool_choice == "none" else request.tools or ()
        prompt = prompt_of(self.agent, asked, tools)
        room = self.agent.setting.tokens - len(prompt[0])
        if room < 1:
            raise Refused(400, f"the prompt has {len(prompt[0])} tokens: no room is left to answer")
        return answer_of(await self.agent.turn(prompt, request.sampling))


def step_text(turn: Turn) -> str:
    """A turn of the agent's own work, for whoever watches."""
    return "\n".join(text for text in (turn.action_text, turn.observation_text) if text) + "\n"


def _played(found: Trajectory) -> Answer:
    if found.stop is Stop.TOOL_ERROR:
        raise Refused(500, f"the agent's environment failed: {found.error}")
    cut = found.stop in (Stop.TOKENS, Stop.VOID)
    last = found.turns[-1].action_text if found.turns else ""
    return Answer(
        content=found.answer if found.answer is not None else last,
        reasoning="".join(step_text(turn) for turn in found.turns),
        finish="length" if cut else "stop",
        prompt_tokens=len(found.turns[0].prompt) if found.turns else 0,
        tokens=sum(len(turn.action) for turn in found.turns),
    )


async def events(desk: Desk, request: ChatRequest) -> AsyncIterator[str]:
    """A streamed answer: each step of the agent as it happens, then what it says."""
    with_usage = request.stream_options is not None and request.stream_options.include_usage
    stream = Stream(request.model, with_usage=with_usage)
    steps: asyncio.Queue[Turn | None] = asyncio.Queue()
    own = 0

    async def work() -> Answer:
        try:
            return await desk.answer(request, steps.put_nowait)
        finally:
            steps.put_nowait(None)

    task = asyncio.create_task(work())
    try:
        yield stream.opening()
        while (turn := await steps.get()) is not None:
            own += 1
            for piece in stream.reasoning(step_text(turn)):
                yield piece
        try:
            answer = await task
        except Refused as refused:
            yield stream.failure(refused.message)
            return
        if not own:
            for piece in stream.reasoning(answer.reasoning):
                yield piece
        for piece in stream.closing(answer):
            yield piece
    finally:
        task.cancel()  # whoever asked is gone, or everything is said


def application(desk: Desk) -> Any:
    """The server as an ASGI application.

    Raises:
        MissingExtra: FastAPI is not installed.
    """
    fastapi, responses = _libraries()
    app = fastapi.FastAPI(title=desk.agent.name, docs_url=None, redoc_url=None, openapi_url=None)

    async def guarded(call: Callable[[], Awaitable[Any]], header: str | None) -> Any:
        try:
            desk.admit(header)
            return await call()
        except Refused as refused:
            return responses.JSONResponse(refused.body, refused.status)

    async def models(request: Any) -> Any:
        async def call() -> Any:
            own = {"id": desk.agent.name, "object": "model", "owned_by": "agentrecipes"}
            return responses.JSONResponse({"object": "list", "data": [{**own, "created": 0}]})

        return await guarded(call, request.headers.get("authorization"))

    async def complete(request: Any) -> Any:
        async def call() -> Any:
            asked = await _read(request, desk.limits)
            if asked.stream:
                desk.require_room()  # before the status is sent
                return responses.StreamingResponse(_placed(desk, asked), media_type=EVENTS)
            async with desk.place():
                answer = await desk.answer(asked, lambda _: None)
            return responses.JSONResponse(completion(answer, asked.model))

        return await guarded(call, request.headers.get("authorization"))

    app.add_route("/v1/models", models, methods=["GET"])
    app.add_route("/v1/chat/completions", complete, methods=["POST"])
    return app


EVENTS = "text/event-stream"


async def _placed(desk: Desk, asked: ChatRequest) -> AsyncIterator[str]:
    try:
        async with desk.place():
            async for line in events(desk, asked):
                yield line
    except Refused as refused:
        yield Stream(asked.model, with_usage=False).failure(refused.message)


async def _read(request: Any, limits: Limits) -> ChatRequest:
    """The body of a request.

    Raises:
        Refused: it is too large, or says what is not understood.
    """
    from pydantic import ValidationError

    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > limits.bytes:
            raise Refused(413, f"the body has more than {limits.bytes} bytes")
    try:
        return ChatRequest.model_validate_json(bytes(data))
    except ValidationError as error:
        told = "; ".join(
            f"{'.'.join(map(str, fault['loc'])) or 'body'}: {fault['msg']}"
            for fault in error.errors()[:5]
        )
        raise Refused(400, told) from None


def _libraries() -> tuple[Any, Any]:
    try:
        import fastapi
        from fastapi import responses
    except ImportError as error:
        raise MissingExtra(
            "serve needs FastAPI and uvicorn. Install them: pip install 'agentrecipes[serve]'"
        ) from error
    return fastapi, responses


def serve(desk: Desk, host: str, port: int, *, told: Callable[[str], None]) -> None:
    """Listen until Ctrl-C; `told` hears where, when it begins.

    Raises:
        MissingExtra: FastAPI or uvicorn is not installed.
        AgentRecipesError: nothing can listen there.
    """
    app = application(desk)
    import uvicorn

    try:
        listener = socket.create_server((host, port), family=_family(host))
    except OSError as error:
        raise AgentRecipesError(
            f"nothing can listen on {host}:{port}: {error.strerror}. Choose another --port"
        ) from None
    with listener:
        port = listener.getsockname()[1]
        told(f"{desk.agent.name} answers on http://{host}:{port}/v1 until Ctrl-C")
        config = uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5)
        with suppress(KeyboardInterrupt):  # the way a server ends
            uvicorn.Server(config).run(sockets=[listener])


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET
