"""A judge on loopback that takes its time and says yes; it prints its port. For bench/judges.py."""

from __future__ import annotations

import json
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

REPLY = json.dumps({"choices": [{"message": {"content": "Verdict: yes"}}]}).encode()


class Handler(BaseHTTPRequestHandler):
    """Takes its time, then says yes."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        time.sleep(float(sys.argv[1]))
        self.send_response(200)
        self.send_header("content-length", str(len(REPLY)))
        self.end_headers()
        self.wfile.write(REPLY)

    def log_message(self, *args: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    """Takes all connections at once."""

    daemon_threads = True
    request_queue_size = 256


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
