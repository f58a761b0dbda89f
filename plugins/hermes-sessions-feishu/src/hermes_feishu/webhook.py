"""The webhook: the platform calls us, and hears that an event is stored, or that it has to come again."""

from __future__ import annotations

import asyncio
from logging import CRITICAL, getLogger
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_feishu.verification import Refusal
from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, WAITING
from hermes_hookspecs.sockets import close_server

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_feishu.config import AccountConfig, FeishuConfig
    from hermes_feishu.intake import Intake
    from hermes_feishu.verification import Opened, Verifier
    from hermes_hookspecs.ports.platform import Inlet

__all__ = ["Webhook"]

_log = getLogger(__name__)
_strangers = getLogger(f"{__name__}.strangers")
_strangers.setLevel(CRITICAL)
"""What callers can cause, as a broken request line, is not for a log that somebody reads."""

_ANSWER_S = 2.5
_MOST_BYTES = 1024 * 1024
_BODY_S = 5.0
_SHUTDOWN_S = 3.0
_LINGER_S = 0.5
"""Seconds for which the rest of a body is read away that was refused, so that its sender can read why."""


class Webhook:
    """Receives the events of one account. For one event loop.

    :param path: of the URL. identify: finds out who we are.
    """

    def __init__(
        self,
        intake: Intake,
        verifier: Verifier,
        config: FeishuConfig,
        account: AccountConfig,
        *,
        path: str,
        identify: Callable[[], Awaitable[None]],
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._intake = intake
        self._verifier = verifier
        self._config = config
        self._account = account
        self._path = path
        self._identify = identify
        self._pause = pause
        self._refused = 0
        self._is_known = False
        self._inlet: Inlet | None = None

    async def run(self, inlet: Inlet) -> None:
        """Listen until cancelled.

        :raises RetryLater: the address is taken. :raises AuthFailed: a person must act.
        """
        inlet.report(CONNECTING)
        self._inlet = inlet
        server = web.Server(
            self._called, access_log=None, logger=_strangers, auto_decompress=False, lingering_time=_LINGER_S
        )
        runner = web.ServerRunner(server, shutdown_timeout=_SHUTDOWN_S)
        await runner.setup()
        listening: asyncio.Server | None = None
        try:
            listening = await self._listen(server)
            await self._find_out(inlet)
            self._is_known = True
            self._report()
            await asyncio.Event().wait()
        finally:
            self._inlet, self._is_known = None, False
            if listening is not None:
                await close_server(listening)
            await runner.cleanup()

    async def _listen(self, server: web.Server) -> asyncio.Server:
        host, port = self._account.listen
        try:
            return await asyncio.get_running_loop().create_server(server, host, port)
        except OSError as error:
            raise RetryLater(f"{host}:{port} cannot be listened on: {error.strerror or 'it is taken'}") from error

    async def _find_out(self, inlet: Inlet) -> None:
        """Find out who we are; meanwhile direct messages are taken, and others have to come again."""
        wait_s = self._config.reconnect_first_s
        while True:
            try:
                await self._identify()
            except RetryLater as error:
                inlet.report(WAITING, f"{error}; tried again in {wait_s:.0f} s")
                await self._pause(wait_s)
                wait_s = min(2 * wait_s, self._config.reconnect_most_s)
            else:
                return

    # --- calls

    async def _called(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != self._path:
            return web.json_response({"msg": "there is nothing at this address"}, status=404)
        if request.method != "POST":
            return web.json_response({"msg": "there is POST here"}, status=405, headers={"Allow": "POST"})
        try:
            body = await self._body(request)
            opened = body if isinstance(body, Refusal) else self._verifier.open(request.headers, body)
            return self._refuse(opened) if isinstance(opened, Refusal) else await self._take(opened)
        except (ConnectionError, asyncio.CancelledError):
            raise
        except Exception:  # noqa: BLE001 - whatever fails in one call, the others are answered
            _log.exception("a call of %s failed", self._path)
            return web.json_response({"msg": "this is our fault; send it again"}, status=500)

    async def _body(self, request: web.BaseRequest) -> bytes | Refusal:
        """Return the raw bytes of a body, or why they are not read."""
        if request.content_type != "application/json":
            return Refusal(status=415, reason="the body is no JSON")
        too_long = Refusal(status=413, reason="the body is too long")
        if (request.content_length or 0) > _MOST_BYTES:
            return too_long
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_S):
                async for piece in request.content.iter_any():
                    body += piece
                    if len(body) > _MOST_BYTES:
                        return too_long
        except TimeoutError:
            return Refusal(status=408, reason="the body took too long")
        return bytes(body)

    async def _take(self, opened: Opened) -> web.Response:
        if opened.challenge is not None:
            return web.json_response({"challenge": opened.challenge})
        stored = self._intake.submit(opened.payload)
        await asyncio.wait({stored}, timeout=_ANSWER_S)
        if stored.done() and stored.result():
            return web.json_response({})
        return web.json_response({"msg": "send it again"}, status=503)

    def _refuse(self, refusal: Refusal) -> web.Response:
        self._refused += 1
        if self._refused.bit_count() == 1:  # the first, second, fourth, ...: strangers must not fill a log
            _log.warning("%d calls of %s were refused, now: %s", self._refused, self._path, refusal.reason)
        self._report(f"{self._refused} calls refused, the last one because {refusal.reason}")
        headers = {"Connection": "close"} if refusal.status in (408, 413) else None
        return web.json_response({"msg": refusal.reason}, status=refusal.status, headers=headers)

    def _report(self, detail: str = "") -> None:
        if self._inlet is not None and self._is_known:
            self._inlet.report(CONNECTED, detail)
