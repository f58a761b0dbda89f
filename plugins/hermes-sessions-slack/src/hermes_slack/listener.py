"""One HTTP server for all accounts of a process: it listens while one of them runs, and tells them apart by path."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import RetryLater

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from aiohttp import web

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

__all__ = ["Listener"]

_MOST_BYTES = 4 * 1024 * 1024


class Listener:
    """A server at ``address`` (``host:port``) with the path ``/slack/<alias>``. For one event loop at a time."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._handlers: dict[str, Handler] = {}
        self._runner: web.AppRunner | None = None

    @asynccontextmanager
    async def serving(self, account_id: str, handler: Handler) -> AsyncIterator[None]:
        """Answer the requests for an account while the block runs.

        :raises RetryLater: nobody can listen there, for one because another process does.
        """
        self._handlers[account_id] = handler
        try:
            if self._runner is None:
                await self._start()
            yield
        finally:
            del self._handlers[account_id]
            if not self._handlers:
                await self._stop()

    async def _start(self) -> None:
        from aiohttp import web

        app = web.Application(client_max_size=_MOST_BYTES)
        app.router.add_post("/slack/{account}", self._answer)
        runner = self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        try:
            await runner.setup()
            await web.TCPSite(runner, self._host, self._port).start()
        except OSError as error:
            await self._stop()
            raise RetryLater(f"nobody can listen on {self._host}:{self._port}: {error.strerror}") from error

    async def _stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await asyncio.shield(runner.cleanup())

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        from aiohttp import web

        handler = self._handlers.get(request.match_info["account"])
        return web.Response(status=404) if handler is None else await handler(request)
