"""A program that callbacks are sent to."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode
from collections import deque
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_hookspecs.sockets import close_server
from hermes_hookspecs.testing.fakes import ARRIVED_BUT_FAILED, BROKEN, OK, RATE_LIMITED, REJECTED, FakeSent
from hermes_webhook.signing import SIGNATURE, TIMESTAMP, fault_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.clock import Clock

__all__ = ["Receiver"]

_WINDOW_S = 300


class Receiver:
    """Takes callbacks, checks their signatures, and knows repetitions by their key. For one event loop.

    :param secret_of: the secret of an account. nudge: called when something arrived.

    Attributes:
        bodies: what arrived, oldest first, each key once. faults: requests that no receiver should get.
    """

    def __init__(self, secret_of: Callable[[str], str], clock: Clock, nudge: Callable[[], None]) -> None:
        self._secret_of = secret_of
        self._clock = clock
        self._nudge = nudge
        self._answers: deque[str] = deque()
        self._runner: web.ServerRunner | None = None
        self._socket: asyncio.Server | None = None
        self._port = 0
        self._ids: dict[str, str] = {}
        self._thawed = asyncio.Event()
        self._thawed.set()
        self.bodies: list[dict[str, object]] = []
        self.faults: list[str] = []

    @property
    def url(self) -> str:
        """Return where callbacks go; the same after a restart."""
        return f"http://127.0.0.1:{self._port}/answers"

    async def start(self) -> None:
        """Listen; idempotent."""
        if self._runner is not None:
            return
        server = web.Server(self._handle, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._socket = await loop.create_server(server, "127.0.0.1", self._port)
        self._port = self._socket.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop listening."""
        runner, self._runner = self._runner, None
        open_socket, self._socket = self._socket, None
        if open_socket is not None:
            await close_server(open_socket)
        if runner is not None:
            await runner.cleanup()

    def freeze(self, frozen: bool) -> None:
        """Answer nothing until thawed."""
        (self._thawed.clear if frozen else self._thawed.set)()

    def next_answers(self, *answers: str) -> None:
        """Say how the next callbacks are answered, as :meth:`FakePlatform.next_sends` does."""
        self._answers.extend(answers)

    def sent(self) -> Sequence[FakeSent]:
        """Return what arrived."""
        return [
            FakeSent(
                message_id=self._ids[str(body["key"])],
                account_id=str(body["account"]),
                chat_id=str(body["chat_id"]),
                thread_id=None if body["thread_id"] is None else str(body["thread_id"]),
                text=str(body["text"]),
                key=str(body["key"]),
                file=_bytes_of(body.get("file")),
                file_name=_name_of(body.get("file")),
            )
            for body in self.bodies
        ]

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = b"".join([piece async for piece in request.content.iter_any()])
        await self._thawed.wait()
        said = json.loads(body)
        self._check(request, body, str(said["account"]), str(said["key"]))
        how = self._answers.popleft() if self._answers else OK
        if how == RATE_LIMITED:
            return web.Response(status=429, headers={"Retry-After": "2"})
        if how == BROKEN:
            return web.Response(status=502, text="<html>bad gateway</html>")
        if how == REJECTED:
            return web.Response(status=410)
        if said["key"] not in self._ids:
            self._ids[said["key"]] = f"answer-{len(self._ids) + 1}"
            self.bodies.append(said)
            self._nudge()
        if how == ARRIVED_BUT_FAILED and request.transport is not None:
            request.transport.abort()
        return web.json_response({"id": self._ids[said["key"]]})

    def _check(self, request: web.BaseRequest, body: bytes, account_id: str, key: str) -> None:
        timestamp, signature = request.headers.get(TIMESTAMP, ""), request.headers.get(SIGNATURE, "")
        secret, now = self._secret_of(account_id), self._clock.now()
        fault = fault_of(secret, timestamp, signature, body, now_ms=now, window_s=_WINDOW_S)
        if fault:
            self.faults.append(fault)
        if request.headers.get("Idempotency-Key") != key:
            self.faults.append("the header Idempotency-Key is not the key of the body")


def _bytes_of(file: object) -> bytes | None:
    return b64decode(str(file["data"]), validate=True) if isinstance(file, dict) else None


def _name_of(file: object) -> str:
    return str(file["name"]) if isinstance(file, dict) else ""
