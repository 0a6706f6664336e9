"""An OpenAI-compatible endpoint that says what a test tells it to."""

from __future__ import annotations

import contextlib
import json
import socket
import struct
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Answer:
    """One HTTP response of the fake endpoint. ``seconds`` is how long the client waits; ``breaks`` is how it ends
    badly: "reset" (no answer at all), "half" (of the body, then it hangs up) or "drip" (a byte now and then).
    """

    body: Any = None  # JSON if it is not bytes
    status: int = 200
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    breaks: str = ""


def completion(text: str | None = "Fine.", finish_reason: str = "stop", **message: Any) -> Answer:
    """What a chat endpoint sends for an answered request."""
    choice = {"index": 0, "finish_reason": finish_reason, "message": {"role": "assistant", "content": text, **message}}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return Answer({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage})


class FakeEndpoint:
    """An OpenAI-compatible endpoint on loopback.

    Attributes:
        url: for a client's base_url.
        requests: path, headers (names in small letters) and body (of JSON what it says) of each request, in
            the order they came.
        script: answers still to give, first come first served.
        otherwise: makes the answer of a request when the script is at its end.
    """

    def __init__(self):
        self.requests: list[dict[str, Any]] = []
        self.script: list[Answer] = []
        self.otherwise = lambda request: completion()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._server.handle_error = lambda *_: None  # clients that hang up are part of the tests
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        self._stopping = threading.Event()
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def stop(self) -> None:
        self._stopping.set()
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, request: dict[str, Any]) -> Answer:
        with self._lock:
            self.requests.append(request)
            return self.script.pop(0) if self.script else self.otherwise(request)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self._respond(None)

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self._respond(json.loads(body) if "json" in self.headers["Content-Type"] else body)

            def _respond(self, body: Any) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                answer = endpoint._answer({"path": self.path, "headers": headers, "body": body})
                endpoint._stopping.wait(answer.seconds)
                content = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                self.send_response(answer.status)
                for name, value in {"Content-Type": answer.content_type, **answer.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                with contextlib.suppress(ConnectionError):  # a client that has given up
                    self._send(answer, content)

            def _send(self, answer: Answer, content: bytes) -> None:
                if answer.breaks == "reset":
                    self.close_connection = True
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    self.connection.close()
                    return
                self.end_headers()
                if answer.breaks == "half":
                    self.wfile.write(content[: len(content) // 2])
                    self.close_connection = True
                elif answer.breaks == "drip":
                    for i in range(len(content)):
                        self.wfile.write(content[i : i + 1])
                        endpoint._stopping.wait(0.05)
                else:
                    self.wfile.write(content)

            def log_message(self, *_: Any) -> None:
                """Nothing on the terminal."""

        return Handler
