"""Sockets that listen. Accounts at one address share one; each has the requests below its path."""

from __future__ import annotations

import asyncio
from logging import Logger, getLogger
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_hookspecs.sockets import close_server
from hermes_webhook.addresses import socket_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    Handler = Callable[[web.BaseRequest, str], Awaitable[web.StreamResponse]]

__all__ = ["Listeners", "said"]

_log = getLogger(__name__)

_LEAVE_S = 2.0
"""Seconds that requests have to end when nobody listens any more."""
_LINGER_S = 1.0
"""Seconds for which the rest of a body is read away that was refused, so that its sender can read why."""
_AGAIN_S = "1"
_BACKLOG = 128


def said(status: int, headers: Mapping[str, str] | None = None, /, **fields: object) -> web.Response:
    """Return an answer in JSON."""
    import json

    body = json.dumps(fields, ensure_ascii=False).encode()
    more = {"Cache-Control": "no-store", **(headers or {})}
    return web.Response(status=status, body=body, content_type="application/json", headers=more)


class Listeners:
    """Opens sockets for whoever joins first, and closes them behind the last who leaves. For one event loop at a time.

    :param places: paths of all configured accounts by address: while one of them is not there, its requests are told
        to come again, instead of being told that there is nothing.
    """

    def __init__(self, places: Mapping[str, Sequence[str]]) -> None:
        self._places = places
        self._open: dict[str, _Listener] = {}

    async def join(self, listen: str, path: str, handler: Handler) -> None:
        """Give a handler the requests below a path. :raises OSError: the address cannot be had."""
        listener = self._open.setdefault(listen, _Listener(listen, self._places.get(listen, ())))
        listener.joining += 1
        try:
            async with listener.lock:
                await listener.start()
                listener.handlers[path] = handler
        finally:
            listener.joining -= 1
            self._forget(listen, listener)

    async def leave(self, listen: str, path: str) -> None:
        """Take a path away, and close the socket behind the last one. Requests under way may end."""
        listener = self._open.get(listen)
        if listener is None:
            return
        listener.handlers.pop(path, None)
        async with listener.lock:
            if not listener.handlers and not listener.joining:
                await listener.stop()
        self._forget(listen, listener)

    def _forget(self, listen: str, listener: _Listener) -> None:
        if not listener.handlers and not listener.joining and not listener.is_open:
            self._open.pop(listen, None)


class _Quiet(Logger):
    """Logs what strangers can cause, as a broken request line, where nobody reads it unless they look for it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.parent = _log

    def exception(self, msg: object, *args: object, **_: object) -> None:  # never a traceback
        """Say what failed in one line."""
        self.debug(msg, *args)


class _Listener:
    """One socket. ``joining``: how many wait to be let in."""

    def __init__(self, listen: str, places: Sequence[str]) -> None:
        self._listen = listen
        self._places = places
        self._runner: web.ServerRunner | None = None
        self._socket: asyncio.Server | None = None
        self.handlers: dict[str, Handler] = {}
        self.lock = asyncio.Lock()
        self.joining = 0

    @property
    def is_open(self) -> bool:
        """Whether it listens."""
        return self._runner is not None

    async def start(self) -> None:
        """Listen, unless it does. :raises OSError: the address cannot be had."""
        if self._runner is not None:
            return
        host, port = socket_of(self._listen) or ("", 0)
        server = web.Server(
            self._handle,
            access_log=None,
            logger=_Quiet(f"{__name__}.http"),
            auto_decompress=False,  # a body is signed as it is sent
            lingering_time=_LINGER_S,
        )
        runner = web.ServerRunner(server, shutdown_timeout=_LEAVE_S)
        await runner.setup()
        try:
            self._socket = await asyncio.get_running_loop().create_server(server, host, port, backlog=_BACKLOG)
        except BaseException:
            await runner.cleanup()
            raise
        self._runner = runner

    async def stop(self) -> None:
        """Stop listening; requests under way have a moment to end."""
        runner, self._runner = self._runner, None
        open_socket, self._socket = self._socket, None
        if runner is None:
            return
        try:
            if open_socket is not None:
                await close_server(open_socket)
        finally:
            await runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        target = request.raw_path
        for path, handler in self.handlers.items():
            if _is_below(target, path):
                return await self._within(handler, request, target[len(path) :])
        if any(_is_below(target, path) for path in self._places):
            return said(503, {"Retry-After": _AGAIN_S}, error="this account is not served now")
        return said(404, error="there is nothing at this address")

    async def _within(self, handler: Handler, request: web.BaseRequest, rest: str) -> web.StreamResponse:
        try:
            return await handler(request, rest)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001 - whatever fails in one request, the others are answered
            _log.exception("a request failed")
            return said(500, error="this is our fault; try again later")


def _is_below(target: str, path: str) -> bool:
    return target.startswith(path) and target[len(path) : len(path) + 1] in ("", "/", "?")
