"""The door of one account while it is served: who may come in, and what they bring."""

from __future__ import annotations

import asyncio
import hmac
from collections import Counter
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import StorageError, StoreStopped
from hermes_hookspecs.ports.platform import CONNECTED
from hermes_webhook.config import WEBHOOK
from hermes_webhook.incoming import MESSAGE, RECALL, read
from hermes_webhook.listeners import said
from hermes_webhook.reading import Reading
from hermes_webhook.signing import SIGNATURE, TIMESTAMP, fault_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aiohttp import web

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import AcceptResult
    from hermes_hookspecs.ports.platform import Inlet
    from hermes_webhook.book import Book
    from hermes_webhook.config import AccountConfig, WebhookConfig
    from hermes_webhook.incoming import Incoming
    from hermes_webhook.shelf import Shelf
    from hermes_webhook.waiting import Waiting

__all__ = ["Door"]

_log = getLogger(__name__)

_TOLD_AGAIN_S = 1.0
_COUNTED = {400: "malformed", 401: "not signed as they should be", 408: "too slow", 413: "too large"}


class Door:
    """Lets requests in. For one event loop and one run of an adapter."""

    def __init__(
        self,
        platform: str,
        account: AccountConfig,
        *,
        config: WebhookConfig,
        secret: str,
        inlet: Inlet,
        book: Book,
        shelf: Shelf,
        waiting: Waiting,
        clock: Clock,
    ) -> None:
        self._platform = platform
        self._account = account
        self._config = config
        self._secret = secret
        self._inlet = inlet
        self._book = book
        self._clock = clock
        self._waiting = waiting
        self._reading = Reading(book, shelf, waiting, config)
        self._taking: set[asyncio.Task[web.Response]] = set()
        self._refused: Counter[str] = Counter()
        self._telling: asyncio.TimerHandle | None = None
        self._stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def stay(self) -> None:
        """Return never. :raises StoreStopped: the store takes no more writes."""
        await self._stopped

    async def close(self) -> None:
        """Take nothing new; what is being stored is stored before this returns, and those who wait are let go."""
        self._waiting.end()
        if self._telling is not None:
            self._telling.cancel()
        if self._taking:
            await asyncio.wait(set(self._taking))

    def open(self) -> None:
        """Say that the account is served."""
        counts = ", ".join(f"{count} {what}" for what, count in sorted(self._refused.items()))
        detail = f"listens at http://{self._account.listen}{self._account.path}"
        self._inlet.report(CONNECTED, f"{detail}; refused requests: {counts}" if counts else detail)

    # --- requests

    async def handle(self, request: web.BaseRequest, rest: str) -> web.StreamResponse:
        """Answer one request. ``rest``: its target behind the account's path."""
        response = await self._answer(request, rest)
        what = _COUNTED.get(response.status)
        if what is not None:
            self._count(what)
        return response

    async def _answer(self, request: web.BaseRequest, rest: str) -> web.StreamResponse:
        if self._waiting.is_over:
            return said(503, {"Retry-After": "1"}, error="this account is being left")
        if request.method == "GET":
            fault = self._fault(request, rest.encode())
            return said(401, error=fault) if fault else await self._reading.get(request, rest)
        if request.method != "POST":
            return said(405, {"Allow": "GET, POST"}, error="there are GET and POST here")
        if rest.rstrip("/") not in ("", "/messages"):
            return said(404, error="there is nothing at this address")
        body = await self._body(request)
        if not isinstance(body, bytes):
            return body
        fault = self._fault(request, body)
        return said(401, error=fault) if fault else await self._post(request, body)

    def _fault(self, request: web.BaseRequest, payload: bytes) -> str:
        """Return why a request is not from somebody who knows the secret, ``""`` where it is."""
        headers = request.headers
        if self._platform == WEBHOOK:
            timestamp, signature = headers.get(TIMESTAMP, ""), headers.get(SIGNATURE, "")
            now, window_s = self._clock.now(), self._config.window_s
            return fault_of(self._secret, timestamp, signature, payload, now_ms=now, window_s=window_s)
        scheme, _, token = headers.get("Authorization", "").partition(" ")
        right = hmac.compare_digest(token.strip().encode("utf-8", "replace"), self._secret.encode())
        return "" if right and scheme.lower() == "bearer" else "Authorization: Bearer is missing or wrong"

    async def _body(self, request: web.BaseRequest) -> bytes | web.Response:
        """Return the raw bytes of a body, or why they are not read."""
        most = self._config.max_body_kib * 1024
        too_large = said(413, {"Connection": "close"}, error=f"a body has at most {most} bytes")
        if (request.content_length or 0) > most:
            return too_large
        if request.headers.get("Content-Encoding", "identity").lower() != "identity":
            return said(415, error="a body is signed and read as it is: without Content-Encoding")
        body = bytearray()
        try:
            async with asyncio.timeout(self._config.body_timeout_s):
                async for piece in request.content.iter_any():
                    body += piece
                    if len(body) > most:
                        return too_large
        except TimeoutError:
            return said(408, {"Connection": "close"}, error="the body did not arrive in time")
        return bytes(body)

    async def _post(self, request: web.BaseRequest, body: bytes) -> web.Response:
        callbacks = self._platform == WEBHOOK
        try:
            incoming = read(body, request.headers.get("Idempotency-Key", ""), callbacks=callbacks)
        except ValueError as error:
            return said(400, error=str(error))
        url = incoming.callback_url
        if url and not any(prefix.allows(url) for prefix in self._account.callback_allow):
            return said(400, error="callback_url is none of those that callback_allow names")
        if incoming.kind not in (MESSAGE, RECALL):
            return said(200, status="ignored", reason=f"type is none of {MESSAGE}, {RECALL}")
        if incoming.user_id == self._account.own_id:
            return said(200, status="ignored", reason="it is our own")
        taking = asyncio.create_task(self._take(incoming), name=f"hermes-{self._platform}-accept")
        self._taking.add(taking)
        taking.add_done_callback(self._taking.discard)
        return await asyncio.shield(taking)

    async def _take(self, incoming: Incoming) -> web.Response:
        """Store a message, and tell what became of it; whoever sent it may be gone by then."""
        event = incoming.event(self._platform, self._account.alias, self._clock.now())
        try:
            state = await asyncio.to_thread(self._book.note, incoming)
            (result,) = await self._inlet.accept([event], state=state)
        except StorageError as error:
            _log.warning("%s/%s: a message was not stored: %s", self._platform, self._account.alias, error)
            if isinstance(error, StoreStopped) and not self._stopped.done():
                self._stopped.set_exception(error)
            return said(503, {"Retry-After": "1"}, error="it was not stored; send it again")
        return _told(incoming, (result,))

    # --- what was refused

    def _count(self, what: str) -> None:
        self._refused[what] += 1
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(_TOLD_AGAIN_S, self._tell)

    def _tell(self) -> None:
        self._telling = None
        self.open()


def _told(incoming: Incoming, results: Sequence[AcceptResult]) -> web.Response:
    (result,) = results
    fields = {"id": incoming.id, "chat_id": incoming.chat_id}
    if result.refused:
        return said(403, status="refused", reason=result.refused, **fields)
    if result.duplicate:
        return said(200, status="duplicate", **fields)
    return said(202, status="accepted", **fields)
