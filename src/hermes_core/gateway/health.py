"""The health endpoint: ``GET /health`` and ``GET /metrics`` on this host alone, for whoever watches the gateway.

So little HTTP that it needs no library: one request a connection, nothing of a body is read.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING, Final

from hermes_core.gateway.metrics import metrics
from hermes_core.settling import settled
from hermes_hookspecs.errors import StorageError
from hermes_hookspecs.ports.platform import CONNECTED
from hermes_hookspecs.sockets import close_server, why_not

if TYPE_CHECKING:
    from hermes_core.gateway.board import Board
    from hermes_hookspecs.ports.store import Store, StoreReader
    from hermes_hookspecs.sessions import StoreStats

__all__ = ["HealthServer"]

_log = getLogger(__name__)

HOST: Final = "127.0.0.1"
_PATIENCE_S = 5.0
_AGAIN_S = 1.0
"""Seconds after which a port that is taken is asked for again."""
_MOST_BYTES = 8192
_OPEN = ("waiting", "sending", "failed")
_MOST_ROWS = 10_000
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}


class HealthServer:
    """Answers as long as the gateway runs. For one event loop.

    :param port: 0 for none.
    """

    def __init__(self, board: Board, store: Store, port: int) -> None:
        self._board = board
        self._store = store
        self._port = port
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        """Listen, if that can be had; the address, or why there is none, stands on the board."""
        if not self._port:
            return
        reason = await self._listen()
        self._board.health = f"port {self._port} cannot be had: {reason}" if reason else f"http://{HOST}:{self._port}"
        if reason:
            _log.warning("the health endpoint cannot listen on port %d: %s; it is tried again", self._port, reason)

    async def keep(self) -> None:
        """Try again until it listens: the gateway that this one is to take over from may have the port."""
        while self._port and self._server is None:
            await asyncio.sleep(_AGAIN_S)
            if not await self._listen():
                self._board.health = f"http://{HOST}:{self._port}"
                _log.info("the health endpoint listens at %s", self._board.health)

    async def _listen(self) -> str:
        """Listen; return why that cannot be, ``""`` where it does."""
        try:
            self._server = await settled(asyncio.start_server(self._serve, HOST, self._port, limit=_MOST_BYTES))
        except OSError as error:
            return why_not(error)
        return ""

    async def stop(self) -> None:
        """Stop listening; idempotent."""
        server, self._server = self._server, None
        if server is not None:
            await close_server(server)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status, kind, body = await self._answer(head)
                writer.write(_response(status, kind, body))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # whoever asked has left, or never asked
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _answer(self, head: bytes) -> tuple[int, str, str]:
        words = head.split(b"\r\n", 1)[0].decode("latin-1").split()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):
            return 400, "text/plain", "bad request\n"
        if words[0] != "GET":
            return 405, "text/plain", "only GET\n"
        path = words[1].partition("?")[0]
        if path == "/health":
            return await self._health()
        if path == "/metrics":
            stats, outbox = await self._counts()
            return 200, "text/plain; version=0.0.4", metrics(self._board, stats, outbox)
        return 404, "text/plain", "there are /health and /metrics\n"

    async def _health(self) -> tuple[int, str, str]:
        stats, outbox = await self._counts()
        accounts = self._board.accounts()
        connected = sum(one.state == CONNECTED for one in accounts)
        if stats is None or self._board.stopping:
            status = "stopping" if self._board.stopping else "store does not answer"
        else:
            status = "ok" if connected == len(accounts) else "degraded"
        body = {
            "status": status,
            "accounts": {str(one.entrance): one.state for one in accounts},
            "waiting": None if stats is None else stats.waiting,
            "outbox": outbox,
        }
        healthy = status == "ok" or (status == "degraded" and connected > 0)
        return 200 if healthy else 503, "application/json", json.dumps(body) + "\n"

    async def _counts(self) -> tuple[StoreStats | None, dict[str, int]]:
        """Return what the store counts, ``None`` where it does not answer."""
        try:
            return await asyncio.wrap_future(self._store.submit_read(_counted))
        except StorageError:
            return None, {}


def _counted(reader: StoreReader) -> tuple[StoreStats, dict[str, int]]:
    counts = dict.fromkeys(_OPEN, 0)
    for delivery in reader.deliveries(statuses=_OPEN, limit=_MOST_ROWS):
        counts[delivery.status] += 1
    return reader.stats(), counts


def _response(status: int, kind: str, body: str) -> bytes:
    data = body.encode("utf-8", "backslashreplace")
    head = (
        f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: {kind}; charset=utf-8\r\n"
        f"Content-Length: {len(data)}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    )
    return head.encode("ascii") + data
