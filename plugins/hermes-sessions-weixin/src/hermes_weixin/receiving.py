"""The long poll: what comes is in the store, with the cursor behind it, before the next poll begins.

The server hands a batch out once. So a poll that is under way is never cut off: when the adapter leaves, it is waited
for, and what it brings is stored; and a batch that the store does not take is offered until it does.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.errors import RetryLater, StorageError
from hermes_hookspecs.ports.platform import CONNECTED, CONNECTING, FAILED, WAITING
from hermes_hookspecs.state import StateUpdate
from hermes_weixin.events import event_of
from hermes_weixin.failures import StaleToken
from hermes_weixin.ledger import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from hermes_hookspecs.clock import Clock
    from hermes_hookspecs.inbox import MessageEvent
    from hermes_hookspecs.ports.platform import Inlet, StateReader
    from hermes_weixin.client import ILinkClient
    from hermes_weixin.config import WeixinConfig
    from hermes_weixin.ledger import Ledger
    from hermes_weixin.quotes import QuoteStore
    from hermes_weixin.wire import InboundMessage, Updates

__all__ = ["Receiver"]

_log = getLogger(__name__)

_HOLD_S = 35.0
_SHORT_S, _LONG_S = 2.0, 30.0
_LONG_AFTER = 3
_SILENT = 2
"""Polls without an answer from which on the account is not said to be connected: each has a connection of its own."""
_STALE_S = 5.0
_COURTESY_S = 2.0


class Receiver:
    """Polls one account until it is cancelled. For one event loop.

    :param bot_id: of the login; another one than before begins a cursor of its own.
    :param pause: waits for seconds. on_login: told by each poll that comes back whether the login is valid.
    """

    def __init__(
        self,
        account_id: str,
        *,
        client: ILinkClient,
        config: WeixinConfig,
        bot_id: str,
        state: StateReader,
        clock: Clock,
        ledger: Ledger,
        quotes: QuoteStore,
        pause: Callable[[float], Awaitable[None]],
        on_login: Callable[[bool], None],
    ) -> None:
        self._account_id = account_id
        self._client = client
        self._config = config
        self._bot_id = bot_id
        self._state = state
        self._clock = clock
        self._ledger = ledger
        self._quotes = quotes
        self._pause = pause
        self._on_login = on_login
        self._hold_s = _HOLD_S
        self._failures = 0
        self._silent = 0
        self._cursor = self._load_cursor()

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled. :raises StaleToken: the login is refused."""
        inlet.report(CONNECTING)
        await self._tell("start")
        try:
            while True:
                await self._round(inlet)
        finally:
            await self._tell("stop")

    async def _round(self, inlet: Inlet) -> None:
        try:
            updates = await self._poll(inlet)
        except StaleToken as error:
            await self._stale(inlet, error)
            return
        except RetryLater as error:
            self._failures += 1
            inlet.report(WAITING, str(error))
            await self._pause(_LONG_S if self._failures % _LONG_AFTER == 0 else _SHORT_S)
            return
        await self._came(inlet, updates)

    async def _came(self, inlet: Inlet, updates: Updates | None) -> None:
        """Take a poll that came back; one to which nobody answered is no success."""
        if updates is None:
            self._silent += 1
            if self._silent >= _SILENT:
                inlet.report(WAITING, f"the server did not answer the last {self._silent} polls")
            return
        self._failures = self._silent = 0
        self._on_login(True)
        inlet.alive()
        inlet.report(CONNECTED)
        await self._take(inlet, updates)

    async def _poll(self, inlet: Inlet) -> Updates | None:
        """Return what a poll brings. Cancelled, it waits for the poll, stores what it brings, and leaves then."""
        poll = asyncio.ensure_future(self._client.poll(self._cursor, self._hold_s))
        try:
            return await asyncio.shield(poll)
        except asyncio.CancelledError:
            await self._last(inlet, poll)
            raise

    async def _last(self, inlet: Inlet, poll: asyncio.Future[Updates | None]) -> None:
        await asyncio.wait({poll}, timeout=self._config.leave_s)
        if not poll.done():
            poll.cancel()
            await asyncio.wait({poll})
            return
        if poll.cancelled() or poll.exception() is not None:
            return
        updates = poll.result()
        if updates is not None:
            await self._take(inlet, updates)

    async def _take(self, inlet: Inlet, updates: Updates) -> None:
        """Store a batch and the cursor behind it, however long that takes; a cancellation waits for it once."""
        self._hold_s = _HOLD_S if updates.wait_ms is None else updates.wait_ms / 1000
        cursor = updates.cursor or self._cursor
        messages = [message for message in updates.messages if message.from_user]
        if not messages:
            self._cursor = cursor  # stored with the next message: nothing stands between the two
            return
        now = self._clock.now()
        state = [self._cursor_update(cursor)]
        events = []
        for message in messages:
            events.append(event_of(message, account_id=self._account_id, now=now, quoted=self._quotes.text))
            state += self._remembered(message, events[-1].text, now)
        # of one key only the newest may be written, in the order in which they came
        newest = {(update.namespace, update.key): update for update in state}
        pause_s = 0.1
        while True:
            try:
                await self._accepted(inlet, events, tuple(newest.values()))
                break
            except StorageError as error:
                inlet.report(WAITING, f"the store takes nothing: {error}")
                _log.warning("weixin/%s: a batch is offered to the store again: %s", self._account_id, error)
            await self._pause(pause_s)
            pause_s = min(pause_s * 2, 10.0)
        self._cursor = cursor

    async def _accepted(self, inlet: Inlet, events: Sequence[MessageEvent], state: Sequence[StateUpdate]) -> None:
        """Hand a batch in; cancelled meanwhile, see how that ends before leaving: it comes only once."""
        handing = asyncio.ensure_future(inlet.accept(events, state=state))
        try:
            await asyncio.shield(handing)
        except asyncio.CancelledError:
            await asyncio.wait({handing}, timeout=self._config.leave_s)
            handing.cancel()
            await asyncio.gather(handing, return_exceptions=True)
            raise

    def _remembered(self, message: InboundMessage, text: str, now: int) -> list[StateUpdate]:
        if message.error or not message.sender:
            return []
        peer = message.sender
        # a server whose clock runs ahead must not keep the window open
        updates = [self._ledger.heard(peer, message.context_token, min(message.created_ms or now, now))]
        if message.id and text:
            updates.append(self._quotes.keep(peer, message.id, text, now))
        return updates

    # --- a login that is refused

    async def _stale(self, inlet: Inlet, error: StaleToken) -> None:
        """Ask once more behind a *start*, which cures some of them; else a person must act.

        :raises StaleToken: it is refused.
        """
        await self._tell("start")
        await self._pause(_STALE_S)
        try:
            updates = await self._poll(inlet)
        except StaleToken:
            self._on_login(False)
            inlet.report(FAILED, str(error))
            raise
        except RetryLater as later:
            inlet.report(WAITING, str(later))
            return
        await self._came(inlet, updates)

    async def _tell(self, what: str) -> None:
        with suppress(RetryLater, StaleToken, TimeoutError):  # a courtesy
            async with asyncio.timeout(_COURTESY_S):
                await self._client.notify(what)

    # --- the cursor

    def _key(self) -> str:
        return f"{encode_text(self._account_id)}/cursor"

    def _load_cursor(self) -> str:
        entry = self._state.get(self._key())
        found = json.loads(entry.value) if entry is not None else {}
        if not isinstance(found, dict) or found.get("bot_id") != self._bot_id:
            return ""
        cursor = found.get("cursor")
        return cursor if isinstance(cursor, str) else ""

    def _cursor_update(self, cursor: str) -> StateUpdate:
        value = json.dumps({"bot_id": self._bot_id, "cursor": cursor})
        return StateUpdate(namespace=NAMESPACE, key=self._key(), value=value)
