"""The fake endpoint: real HTTP on loopback, answers from a script, rules of the real one."""

from __future__ import annotations

import json
import select
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import attrs

from hermes_openai.testing.replies import Answer, Frame, Reply, refuse
from hermes_openai.testing.requests import Asked, complaint_about

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["FakeEndpoint"]

_LOOK_S = 0.02
_LONGEST_S = 60.0
"""After so long a stream that stands still ends by itself: a test that fails must not hang."""


class FakeEndpoint:
    """Answers ``POST`` to ``/v1/chat/completions`` and ``/v1/audio/transcriptions``: one answer of the script each.

    A request that breaks the rules of the API is refused in OpenAI's words and uses up no answer; behind the end of
    the script everything is refused.

    :param key: what it wants as bearer, ``None`` for anything.
    :param context_tokens: what its model can read; a longer prompt is refused as OpenAI does.
    :param strict: whether messages are checked.
    """

    def __init__(
        self, *script: Reply, key: str | None = None, context_tokens: int | None = None, strict: bool = True
    ) -> None:
        self.requests: list[Asked] = []
        """What it was sent, oldest first; refused ones, too."""
        self.hung_up = Event()
        """Set when somebody who was being answered has gone away."""
        self._script = list(script)
        self._key = key
        self._context_tokens = context_tokens
        self._strict = strict
        self._lock = Lock()
        self._server = _Server(self)
        self._thread = Thread(target=self._server.serve_forever, args=(_LOOK_S,), daemon=True)

    @property
    def base_url(self) -> str:
        """Return the address, up to ``/v1``."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def then(self, *script: Reply) -> FakeEndpoint:
        """Add answers to the script. Returns the endpoint."""
        with self._lock:
            self._script += script
        return self

    @property
    def left(self) -> int:
        """Return how many answers of the script are left."""
        return len(self._script)

    def __enter__(self) -> FakeEndpoint:  # noqa: PYI034 - a subclass gains nothing here
        """Serve, in a thread of its own."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Serve no more."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, asked: Asked) -> Answer:
        """Return what is answered to a request, and note it."""
        with self._lock:
            earlier = self.requests[-1] if self.requests else None
            if earlier is not None:
                asked = attrs.evolve(asked, cached_tokens=asked.shared_tokens(earlier))
            self.requests.append(asked)
            refusal = self._refusal(asked)
            if refusal is not None:
                return refusal(asked)
            if not self._script:
                return refuse(400, "the script of the fake endpoint is at its end")(asked)
            return self._script.pop(0)(asked)

    def _refusal(self, asked: Asked) -> Reply | None:
        if not asked.path.endswith(("/v1/chat/completions", "/v1/audio/transcriptions")):
            return refuse(404, f"Invalid URL (POST {asked.path})")
        bearer = asked.headers.get("authorization", "").removeprefix("Bearer ")
        if self._key is not None and bearer != self._key:
            return refuse(401, f"Incorrect API key provided: {bearer}.", code="invalid_api_key")
        complaint = complaint_about(asked) if self._strict and not asked.is_speech else ""
        if complaint:
            return refuse(400, complaint)
        if self._context_tokens is not None and asked.prompt_tokens > self._context_tokens:
            words = (
                f"This model's maximum context length is {self._context_tokens} tokens. However, your messages "
                f"resulted in {asked.prompt_tokens} tokens. Please reduce the length of the messages."
            )
            return refuse(400, words, code="context_length_exceeded")
        return None


class _Server(ThreadingHTTPServer):
    """Serves one endpoint."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, endpoint: FakeEndpoint) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.endpoint = endpoint

    def handle_error(self, request: object, client_address: object) -> None:
        """Note that a client is gone, whose connection was still being closed; anything else is told."""
        if isinstance(sys.exception(), OSError):
            self.endpoint.hung_up.set()
        else:
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # passed on as it came


class _Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    """Each piece goes out at once; otherwise a second answer of a connection waits 40 ms for an acknowledgement."""
    server: _Server

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        try:
            body: object = json.loads(raw)
        except ValueError:
            body = {}
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(path=self.path, headers=headers, raw=raw, body=body if isinstance(body, dict) else {})
        try:
            self._send(self.server.endpoint.take(asked))
        except OSError:
            self.server.endpoint.hung_up.set()
            self.close_connection = True

    def _send(self, answer: Answer) -> None:
        if answer.status is None:
            self._break()
            return
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if all(self._send_frame(frame) for frame in answer.frames):
            self.wfile.write(b"0\r\n\r\n")

    def _send_frame(self, frame: Frame) -> bool:
        """Send one piece of an answer; return whether the connection still stands."""
        if isinstance(frame, bytes):
            if frame:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
            return True
        if isinstance(frame, Event) and self._wait(frame):
            return True
        if isinstance(frame, Event):
            self.server.endpoint.hung_up.set()
        self._break()
        return False

    def _wait(self, gate: Event) -> bool:
        """Wait for the gate; return whether somebody still listens."""
        for _ in range(int(_LONGEST_S / _LOOK_S)):
            if gate.is_set():
                return True
            readable, _, _ = select.select([self.connection], [], [], _LOOK_S)
            if readable and not self.connection.recv(1, socket.MSG_PEEK):
                return False
        return True

    def _break(self) -> None:
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the standard library
        """Say nothing."""
