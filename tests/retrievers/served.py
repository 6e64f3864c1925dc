"""A retrieval server on loopback, whose replies a function makes of what is posted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = tuple[int, bytes]


class Heard:
    """What the server was asked so far, and where it is."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []


def passages_for(body: dict[str, Any]) -> Reply:
    """As many passages as are asked for, which tell the query."""
    lists = [
        [{"document": document(query, rank), "score": 1.0 / rank} for rank in range(1, k + 1)]
        for query in body["queries"]
        for k in [body["topk"]]
    ]
    return 200, json.dumps({"result": lists}).encode()


def document(query: str, rank: int) -> dict[str, str]:
    return {"id": f"{query}-{rank}", "contents": f'"{query}"\nText {rank} of {query}.'}


@contextmanager
def served(reply: Callable[[dict[str, Any]], Reply] = passages_for) -> Iterator[Heard]:
    """A server that replies ``reply(body)``; gives what it heard."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            heard.bodies.append(body)
            heard.keys.append(self.headers["authorization"])
            status, data = reply(body)
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = Patient(("127.0.0.1", 0), Handler)
    heard = Heard(f"http://127.0.0.1:{server.server_address[1]}/retrieve")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Patient(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that gave up is no error."""
