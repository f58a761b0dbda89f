"""One account: it receives, sends within what the quota leaves, shows that it types, fetches bytes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import attrs

from hermes_hookspecs.errors import PlatformError, Rejected, RetryLater
from hermes_hookspecs.outbox import PartDraft
from hermes_hookspecs.ports.platform import Deferred, Sent
from hermes_weixin.client import ILinkClient
from hermes_weixin.failures import THROTTLED, Refused, StaleToken
from hermes_weixin.ledger import Ledger
from hermes_weixin.markdown import filtered
from hermes_weixin.media import Media, medium_of
from hermes_weixin.pacing import Pacing
from hermes_weixin.quotes import QuoteStore
from hermes_weixin.receiving import Receiver
from hermes_weixin.splitting import FILE_FORMAT, joined_within, parts_within
from hermes_weixin.typing_state import TypingState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.platform import AccountSetup, DeliveryPart, Inlet, SendResult
    from hermes_hookspecs.source import SessionSource
    from hermes_weixin.config import WeixinConfig
    from hermes_weixin.credentials import Credentials

__all__ = ["WeixinAdapter"]

_AGAIN_S = (5.0, 30.0, 120.0)
"""Waits behind a -2 that the reckoning does not explain, before the answer is put off to the next message."""
_MOST_TRIED = 1000
_PIECE = 1 << 16


@attrs.frozen
class _Login:
    """What is known of the login, and the seconds after which a send is tried again."""

    reason: str = ""
    after_s: float = 0.0

    def later(self) -> RetryLater:
        return RetryLater(self.reason, after_s=self.after_s)


_SOUND = _Login()
_DOUBTED = _Login("the login was refused; whether it is valid any more is seen at the next poll", 10.0)
_REFUSED = _Login("the login is not valid any more; run: hermes weixin login", 600.0)


class WeixinAdapter:
    """An adapter of the platform ``weixin``. For one event loop.

    :param pause: waits for seconds; what tests replace.
    """

    def __init__(
        self,
        setup: AccountSetup,
        config: WeixinConfig,
        credentials: Credentials,
        *,
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._setup = setup
        self._config = config
        self._credentials = credentials
        self._pause = pause
        self._ledger = Ledger(setup.account_id, setup.state, config)
        self._quotes = QuoteStore(setup.account_id, setup.state, config)
        self._pacing = Pacing(setup.clock, config, pause)
        self._typing = TypingState(setup.clock)
        self._tried: dict[str, int] = {}
        self._login = _SOUND
        self._session: aiohttp.ClientSession | None = None

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled; the connections are let go of then.

        :raises AuthFailed: the login is refused.
        """
        self._login = _SOUND
        session = self._open()
        receiver = Receiver(
            self._setup.account_id,
            client=self._client(session),
            config=self._config,
            bot_id=self._credentials.bot_id,
            state=self._setup.state,
            clock=self._setup.clock,
            ledger=self._ledger,
            quotes=self._quotes,
            pause=self._pause,
            on_login=self._set_login,
        )
        try:
            await receiver.run(inlet)
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Let go of the connections; the next request makes new ones."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    # --- sending

    def split(self, text: str, target: SessionSource) -> Sequence[PartDraft]:
        """Return the messages of an answer: as they are, or a file where they would be more than may be sent."""
        left = self._ledger.left(_peer(target), self._setup.clock.now()) or self._config.quota
        return parts_within(text, self._config, left)

    def join(self, texts: Sequence[str], target: SessionSource) -> tuple[int, Sequence[PartDraft]]:
        """Join answers that waited for a message of the person: each message counts."""
        left = self._ledger.left(_peer(target), self._setup.clock.now()) or self._config.quota
        return joined_within(texts, self._config, left)

    async def send(self, part: DeliveryPart) -> SendResult:
        """Send one message."""
        if self._login is not _SOUND:
            raise self._login.later()
        peer = _peer(part.target)
        if part.target.chat_type != "dm":
            raise Rejected("the bot channel has no groups")
        reason = self._ledger.why_not(peer, self._setup.clock.now())
        if reason:
            return Deferred(reason=reason)
        async with self._pacing.turn(peer):
            return await self._send(part, peer)

    async def _send(self, part: DeliveryPart, peer: str) -> SendResult:
        session = self._open()
        client = self._client(session)
        try:
            item: Mapping[str, object]
            if part.media is not None:
                item = await Media(session, self._config).upload(client, peer, part.media)
            elif part.format == FILE_FORMAT:
                name, data = "answer.md", part.text.encode("utf-8", "replace")
                item = await Media(session, self._config).upload_file(client, peer, name, data)
            else:
                item = {"type": 1, "text_item": {"text": filtered(part.text)}}
            message_id = await client.send(
                peer, item, client_id=f"hermes:{part.key}", context_token=self._ledger.peer(peer).token
            )
        except StaleToken:
            # the next poll decides: some of these refusals are cured by a *start*
            self._login = _DOUBTED
            raise _DOUBTED.later() from None
        except Refused as error:
            return self._refused(part, peer, error)
        self._tried.pop(part.key, None)
        state = [self._ledger.sent(peer)]
        if message_id:
            state.append(self._quotes.keep(peer, message_id, part.text, self._setup.clock.now()))
        return Sent(platform_message_id=message_id, state=tuple(state))

    def _refused(self, part: DeliveryPart, peer: str, error: Refused) -> SendResult:
        """Return, or raise, what a refusal means; -2 may be anything, and tries are few."""
        if error.code != THROTTLED:
            raise error
        tried = self._tried.get(part.key, 0)
        if tried < len(_AGAIN_S):
            if len(self._tried) >= _MOST_TRIED:
                self._tried.clear()
            self._tried[part.key] = tried + 1
            raise RetryLater(str(error), after_s=_AGAIN_S[tried]) from error
        self._tried.pop(part.key, None)
        self._ledger.exhausted(peer)
        return Deferred(reason=f"{error}; it goes out with their next message")

    # --- beside

    async def typing(self, target: SessionSource, *, on: bool) -> None:
        """Show, or stop showing, that an answer is being written; nothing that fails is told."""
        peer = _peer(target)
        if self._login is not _SOUND or (on and self._ledger.why_not(peer, self._setup.clock.now())):
            return
        client = self._client(self._open())
        try:
            ticket = await self._typing.ticket(peer, lambda: client.typing_ticket(peer, self._ledger.peer(peer).token))
            if ticket:
                await client.type(peer, ticket, on=on)
        except PlatformError:
            self._typing.failed(peer)

    async def fetch(self, attachment: Attachment, source: SessionSource) -> AsyncIterator[bytes]:
        """Yield the bytes of an attachment."""
        data = await Media(self._open(), self._config).download(medium_of(attachment.reference))
        for start in range(0, len(data), _PIECE):
            yield data[start : start + _PIECE]

    # --- the connection

    def _set_login(self, valid: bool) -> None:
        self._login = _SOUND if valid else _REFUSED

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            self._session = aiohttp.ClientSession(auto_decompress=True)
        return self._session

    def _client(self, session: aiohttp.ClientSession) -> ILinkClient:
        return ILinkClient(session, self._config, base_url=self._credentials.base_url, token=self._credentials.token)


def _peer(target: SessionSource) -> str:
    peer = target.chat_id or target.user_id
    if not peer:
        raise Rejected("the answer has no address")
    return peer
