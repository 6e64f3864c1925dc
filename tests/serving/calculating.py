"""An agent with a calculator that says what a script tells it to, and a server for it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from openai import OpenAI

from agentrecipes.components import build
from agentrecipes.engines.protocol import Request
from agentrecipes.engines.scripted import ScriptedEngine
from agentrecipes.models.tiny import Tiny
from agentrecipes.rollout.chat import Chat
from agentrecipes.rollout.setting import Setting
from agentrecipes.serving.agent import Agent
from agentrecipes.serving.server import Desk, Limits, application

TOKENIZER = Tiny().tokenizer()
CHAT = Chat(TOKENIZER)
HOST = "127.0.0.1"
TWO_CALLS = (
    "<think> both at once </think>\n"
    '<tool_call>\n{"name": "calculator", "arguments": {"expression": "17 * 4"}}\n</tool_call>\n'
    '<tool_call>\n{"name": "calculator", "arguments": {"expression": "9 - 2"}}\n</tool_call>'
)
ANSWER = "<think> read off </think>\n<answer> 68 and 7 </answer>"


def agent(answer: Callable[[Request], str], *, tokens: int = 4096) -> Agent:
    """An agent whose policy says what `answer` makes of each request."""
    environment = build(
        "environment",
        {
            "name": "tools",
            "dataset": "arithmetic",
            "tools": ["calculator"],
            "protocol": {"name": "hermes", "calls_per_turn": 2},
            "instructions": "none",
        },
    )
    setting = Setting(
        environment=environment,
        engine=ScriptedEngine(TOKENIZER, answer),
        chat=CHAT,
        tokens=tokens,
        tokens_per_turn=512,
    )
    return Agent.of("calc-1", setting)


def two_rounds(request: Request) -> str:
    """Two calls first, and the answer once results are there."""
    return ANSWER if "<tool_response>\n" in CHAT.decode(request.ids) else TWO_CALLS


@contextmanager
def served(desk: Desk) -> Iterator[str]:
    """The address of a real server for the desk, on loopback, while the block lasts."""
    listener = socket.create_server((HOST, 0))
    server = uvicorn.Server(uvicorn.Config(application(desk), log_level="error"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    limit = time.monotonic() + 60
    while not server.started and time.monotonic() < limit:
        time.sleep(0.01)
    try:
        yield f"http://{HOST}:{listener.getsockname()[1]}/v1"
    finally:
        server.should_exit = True
        thread.join(timeout=30)
        listener.close()


@contextmanager
def client(
    answer: Callable[[Request], str] = two_rounds, limits: Limits | None = None, key: str = "none"
) -> Iterator[OpenAI]:
    """The official client, at a server whose agent says what `answer` makes of a request."""
    desk = Desk(agent(answer), limits or Limits())
    with (
        served(desk) as address,
        OpenAI(base_url=address, api_key=key, timeout=60, max_retries=0) as opened,
    ):
        yield opened
