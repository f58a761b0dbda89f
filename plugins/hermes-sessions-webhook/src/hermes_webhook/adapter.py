"""One account of either platform: it listens, and keeps or posts its answers."""

from __future__ import annotations

import asyncio
from random import random
from typing import TYPE_CHECKING

from hermes_hookspecs.errors import Rejected
from hermes_hookspecs.ports.platform import CONNECTING, WAITING, Sent
from hermes_hookspecs.sockets import why_not
from hermes_webhook.book import Book
from hermes_webhook.callbacks import post, session
from hermes_webhook.door import Door
from hermes_webhook.shelf import Shelf
from hermes_webhook.waiting import Waiting

if TYPE_CHECKING:
    import aiohttp

    from hermes_hookspecs.ports.platform import AccountSetup, DeliveryPart, Inlet, SendResult
    from hermes_hookspecs.state import StateUpdate
    from hermes_webhook.config import AccountConfig, WebhookConfig
    from hermes_webhook.listeners import Listeners

__all__ = ["WebhookAdapter"]

_FIRST_S, _MOST_S = 0.5, 30.0
"""Seconds until an address that cannot be had is asked for again: first, and at most."""


class WebhookAdapter:
    """An adapter of ``webhook`` or ``api_server``. For one event loop at a time."""

    def __init__(
        self,
        platform: str,
        account: AccountConfig,
        *,
        config: WebhookConfig,
        secret: str,
        setup: AccountSetup,
        listeners: Listeners,
    ) -> None:
        self._platform = platform
        self._account = account
        self._config = config
        self._secret = secret
        self._clock = setup.clock
        self._listeners = listeners
        keep_ms = int(config.keep_hours * 3_600_000)
        self._book = Book(platform, account.alias, setup.state, setup.clock, keep_ms=keep_ms)
        self._shelf = Shelf(setup.folder / "files", setup.clock, keep_ms=keep_ms)
        self._waiting: Waiting | None = None
        self._client: aiohttp.ClientSession | None = None

    def __repr__(self) -> str:
        return f"WebhookAdapter({self._platform!r}, {self._account.alias!r})"

    # --- receiving

    async def run(self, inlet: Inlet) -> None:
        """Listen until cancelled; what is being stored then is stored before this ends.

        :raises StoreStopped: the store takes no more writes.
        """
        waiting = self._waiting = Waiting(self._clock)
        door = Door(
            self._platform,
            self._account,
            config=self._config,
            secret=self._secret,
            inlet=inlet,
            book=self._book,
            shelf=self._shelf,
            waiting=waiting,
            clock=self._clock,
        )
        await asyncio.to_thread(self._shelf.sweep)
        async with session(self._config.callback_timeout_s) as client:
            self._client = client
            try:
                await self._listen(inlet, door)
                door.open()
                await door.stay()
            finally:
                self._waiting = self._client = None
                await door.close()
                await self._listeners.leave(self._account.listen, self._account.path)

    async def _listen(self, inlet: Inlet, door: Door) -> None:
        """Join the others at our address, as soon as it can be had."""
        inlet.report(CONNECTING)
        wait_s = _FIRST_S
        while True:
            try:
                await self._listeners.join(self._account.listen, self._account.path, door.handle)
            except OSError as error:
                inlet.report(WAITING, f"cannot listen at {self._account.listen}: {why_not(error)}")
            else:
                return
            await asyncio.sleep(wait_s * (0.5 + random()))  # noqa: S311 - spreads, hides nothing
            wait_s = min(2 * wait_s, _MOST_S)

    # --- sending

    async def send(self, part: DeliveryPart) -> SendResult:
        """Post a part where its message says, or keep it until it is fetched.

        :raises RetryLater, Rejected: what became of a callback.
        """
        url = await asyncio.to_thread(self._callback_of, part)
        if not url:
            return await self._keep(part)
        if self._client is not None:
            return await post(self._client, url, part, secret=self._secret, clock=self._clock)
        async with session(self._config.callback_timeout_s) as client:
            return await post(client, url, part, secret=self._secret, clock=self._clock)

    def _callback_of(self, part: DeliveryPart) -> str:
        """Return where a part is posted to, ``""`` where it is kept. Blocks for a read."""
        target = part.target
        noted = self._book.message(target.chat_id or "", target.message_id) if target.message_id else None
        if noted is None or not noted.callback_url:
            return self._account.callback_url
        if not any(prefix.allows(noted.callback_url) for prefix in self._account.callback_allow):
            raise Rejected("its callback_url is none of those that callback_allow names now")
        return noted.callback_url

    async def _keep(self, part: DeliveryPart) -> Sent:
        update = await asyncio.to_thread(self._kept, part)
        if self._waiting is not None:
            self._waiting.stir(part.target.chat_id or "", part.target.thread_id or "")
        return Sent(platform_message_id=part.key, state=(update,))

    def _kept(self, part: DeliveryPart) -> StateUpdate:
        """Return what makes a part appear; the bytes of its file can be fetched before that. Blocks."""
        number = "" if part.media is None else self._shelf.put(part.media.data)
        return self._book.keep(part, number)
