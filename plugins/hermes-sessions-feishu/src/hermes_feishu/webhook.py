"""The webhook: the platform calls us, and hears that an event is stored, or that it has to come again."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from aiohttp import web

from hermes_feishu.verification import Refusal
from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, WAITING
from hermes_hookspecs.sockets import why_not

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from hermes_feishu.config import AccountConfig, FeishuConfig
    from hermes_feishu.intake import Intake
    from hermes_feishu.listening import Listeners
    from hermes_feishu.verification import Opened, Verifier
    from hermes_hookspecs.ports.platform import Inlet

__all__ = ["Webhook"]

_log = getLogger(__name__)
_ANSWER_S = 2.5
_MOST_BYTES = 1024 * 1024
_BODY_S = 5.0


class Webhook:
    """Receives the events of one account. For one event loop.

    :param listeners: of all accounts, which may share an address. identify: finds out who we are.
    """

    def __init__(
        self,
        intake: Intake,
        verifier: Verifier,
        config: FeishuConfig,
        account: AccountConfig,
        *,
        listeners: Listeners,
        identify: Callable[[], Awaitable[None]],
        pause: Callable[[float], Awaitable[None]],
    ) -> None:
        self._intake = intake
        self._verifier = verifier
        self._config = config
        self._account = account
        self._listeners = listeners
        self._identify = identify
        self._pause = pause
        self._refused = 0
        self._last_refusal = ""
        self._is_known = False
        self._inlet: Inlet | None = None

    async def run(self, inlet: Inlet) -> None:
        """Listen until cancelled.

        :raises RetryLater: the address is taken. :raises AuthFailed: a person must act.
        """
        inlet.report(CONNECTING)
        self._inlet = inlet
        try:
            await self._listen()
            await self._find_out(inlet)
            self._is_known = True
            self._report()
            await asyncio.Event().wait()
        finally:
            self._inlet, self._is_known = None, False
            await self._listeners.leave(self._account.listen, self._account.path)

    async def _listen(self) -> None:
        host, port = self._account.listen
        try:
            await self._listeners.join(self._account.listen, self._account.path, self._called)
        except OSError as error:
            raise RetryLater(f"{host}:{port} cannot be listened on: {why_not(error)}") from error

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
        body = await self._body(request)
        opened = body if isinstance(body, Refusal) else self._verifier.open(request.headers, body)
        return self._refuse(opened) if isinstance(opened, Refusal) else await self._take(opened)

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
            _log.warning(
                "refused so far: %d of the calls of %s, now: %s", self._refused, self._account.path, refusal.reason
            )
        self._last_refusal = refusal.reason
        self._report()
        headers = {"Connection": "close"} if refusal.status in (408, 413) else None
        return web.json_response({"msg": refusal.reason}, status=refusal.status, headers=headers)

    def _report(self) -> None:
        if self._inlet is None or not self._is_known:
            return
        host, port = self._account.listen
        detail = f"listens at http://{f'[{host}]' if ':' in host else host}:{port}{self._account.path}"
        if self._refused:
            calls = "1 call was" if self._refused == 1 else f"{self._refused} calls were"
            detail += f"; {calls} refused, the last one because {self._last_refusal}"
        self._inlet.report(CONNECTED, detail)
