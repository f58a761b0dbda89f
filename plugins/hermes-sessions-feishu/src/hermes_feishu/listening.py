"""Sockets of webhooks. Accounts at one address share one, and each has the calls of its own path."""

from __future__ import annotations

import asyncio
from logging import CRITICAL, getLogger
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_hookspecs.sockets import close_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    Address = tuple[str, int]
    Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]

__all__ = ["Listeners"]

_log = getLogger(__name__)
_strangers = getLogger(f"{__name__}.strangers")
_strangers.setLevel(CRITICAL)
"""What callers can cause, as a broken request line, is not for a log that somebody reads."""

_SHUTDOWN_S = 3.0
_LINGER_S = 0.5
"""Seconds for which the rest of a body is read away that was refused, so that its sender can read why."""
_AGAIN_S = "5"


class Listeners:
    """Opens a socket for whoever comes first, and closes it behind the last one. For one event loop at a time.

    :param places: address and path of each configured account: while one of them is not there, its calls are told to
        come again, instead of being told that there is nothing.
    """

    def __init__(self, places: Iterable[tuple[Address, str]]) -> None:
        self._places = frozenset(places)
        self._listeners: dict[Address, _Listener] = {}

    async def join(self, address: Address, path: str, handler: Handler) -> None:
        """Give a handler the calls of a path. :raises OSError: the address cannot be had."""
        paths = frozenset(path for place, path in self._places if place == address)
        listener = self._listeners.setdefault(address, _Listener(address, paths))
        listener.joining += 1
        try:
            async with listener.moving:
                await listener.open()
                listener.handlers[path] = handler
        finally:
            listener.joining -= 1
            self._forget(address, listener)

    async def leave(self, address: Address, path: str) -> None:
        """Take a path away; the socket closes behind the last one. Calls under way may end."""
        listener = self._listeners.get(address)
        if listener is None:
            return
        listener.handlers.pop(path, None)
        async with listener.moving:
            if not listener.handlers and not listener.joining:
                await listener.close()
        self._forget(address, listener)

    def _forget(self, address: Address, listener: _Listener) -> None:
        if not listener.handlers and not listener.joining and not listener.is_open:
            self._listeners.pop(address, None)


class _Listener:
    """One socket. ``joining``: how many wait to be let in. ``moving``: held by who opens or closes it."""

    def __init__(self, address: Address, paths: frozenset[str]) -> None:
        self._address = address
        self._paths = paths
        self._runner: web.ServerRunner | None = None
        self._socket: asyncio.Server | None = None
        self.handlers: dict[str, Handler] = {}
        self.moving = asyncio.Lock()
        self.joining = 0

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._runner is not None

    async def open(self) -> None:
        """Listen, unless it does. :raises OSError: the address cannot be had."""
        if self._runner is not None:
            return
        server = web.Server(
            self._called, access_log=None, logger=_strangers, auto_decompress=False, lingering_time=_LINGER_S
        )
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        try:
            self._socket = await asyncio.get_running_loop().create_server(server, *self._address)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner

    async def close(self) -> None:
        """Stop listening; calls under way have a moment to end."""
        runner, self._runner = self._runner, None
        listening, self._socket = self._socket, None
        try:
            if listening is not None:
                await close_server(listening)
        finally:
            if runner is not None:
                await runner.cleanup()

    async def _called(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = self.handlers.get(request.path)
        if handler is None and request.path in self._paths:
            again = {"Retry-After": _AGAIN_S}
            return web.json_response({"msg": "this account is not served now"}, status=503, headers=again)
        if handler is None:
            return web.json_response({"msg": "there is nothing at this address"}, status=404)
        if request.method != "POST":
            return web.json_response({"msg": "there is POST here"}, status=405, headers={"Allow": "POST"})
        try:
            return await handler(request)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001 - whatever fails in one call, the others are answered
            _log.exception("a call of %s failed", request.path)
            return web.json_response({"msg": "this is our fault; send it again"}, status=500)
