"""A judge over HTTP on loopback, whose replies a function makes of prompts."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = str | tuple[int, str]  # what is said, or a status and the body of an error


class Heard:
    """What the server was asked so far."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most = 0  # requests at once
        self.now = 0
        self.lock = threading.Lock()
        self.url = ""

    @property
    def prompts(self) -> list[str]:
        return [body["messages"][-1]["content"] for body in self.bodies]


@contextmanager
def served(reply: Callable[[str], Reply], seconds: float = 0.0):
    """A server that waits `seconds` and replies ``reply(prompt)``; gives what it heard."""
    heard = Heard()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            with heard.lock:
                heard.bodies.append(body)
                heard.headers.append(dict(self.headers))
                heard.now += 1
                heard.most = max(heard.most, heard.now)
            time.sleep(seconds)
            said = reply(body["input"] if "input" in body else body["messages"][-1]["content"])
            with heard.lock:
                heard.now -= 1
            status, data = said if isinstance(said, tuple) else (200, completion(said))
            self.send_response(status)
            self.send_header("content-length", str(len(data.encode())))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *args: object) -> None:
            pass

    server = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    heard.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address) -> None:
        pass  # a client that gave up


def completion(text: str) -> str:
    """A chat completion as the protocol has it, 10 tokens asked and 2 replied."""
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    return json.dumps({"choices": [{"message": {"content": text}}], "usage": usage})
