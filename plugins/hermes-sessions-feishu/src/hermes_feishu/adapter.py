"""One account: it receives, by a connection or a webhook, sends, edits, shows that it writes, fetches bytes."""

from __future__ import annotations

import asyncio
from logging import getLogger
from typing import TYPE_CHECKING

from hermes_feishu.client import FeishuClient, mapping_of, text_of
from hermes_feishu.config import WEBHOOK
from hermes_feishu.content import resource_of
from hermes_feishu.intake import Intake
from hermes_feishu.lookups import Lookups, path_part
from hermes_feishu.names import Names
from hermes_feishu.pacing import Pacing
from hermes_feishu.reactions import TypingReactions
from hermes_feishu.reader import EventReader
from hermes_feishu.sending import Outgoing
from hermes_hookspecs.errors import AuthFailed, Rejected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from hermes_feishu.config import AccountConfig, FeishuConfig
    from hermes_feishu.connection import LongConnection
    from hermes_feishu.credentials import Credentials
    from hermes_feishu.listening import Listeners
    from hermes_feishu.webhook import Webhook
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.ports.platform import AccountSetup, DeliveryPart, Inlet, SendResult
    from hermes_hookspecs.source import SessionSource

__all__ = ["FeishuAdapter"]

_log = getLogger(__name__)

_ACTIVE = 2
"""``activate_status`` of a bot that is switched on."""


class FeishuAdapter:
    """An adapter of the platform ``feishu``. For one event loop.

    :param listeners: of the webhooks of all accounts; asked for by a webhook alone.
    :param pause: waits for seconds; what tests replace.
    """

    def __init__(
        self,
        setup: AccountSetup,
        config: FeishuConfig,
        account: AccountConfig,
        credentials: Credentials,
        *,
        listeners: Callable[[], Listeners],
        pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._account_id = setup.account_id
        self._config = config
        self._client = FeishuClient(account, credentials, setup.clock, timeout_s=config.timeout_s)
        lookups = Lookups(self._client, setup.clock)
        names = Names(self._client, setup.clock)
        self._reader = EventReader(setup.account_id, account, setup.clock, lookups=lookups, names=names)
        self._intake = Intake(self._reader)
        self._outgoing = Outgoing(
            self._client, config, account, reader=self._reader, lookups=lookups, pacing=Pacing(setup.clock, pause)
        )
        self._reactions = TypingReactions(self._client, setup.clock)
        self._receiving = self._receiver(setup, account, credentials, listeners, pause)

    def _receiver(
        self,
        setup: AccountSetup,
        account: AccountConfig,
        credentials: Credentials,
        listeners: Callable[[], Listeners],
        pause: Callable[[float], Awaitable[None]],
    ) -> LongConnection | Webhook:
        if account.mode == WEBHOOK:
            from hermes_feishu.verification import Verifier
            from hermes_feishu.webhook import Webhook

            return Webhook(
                self._intake,
                Verifier(credentials, setup.clock),
                self._config,
                account,
                listeners=listeners(),
                identify=self._identify,
                pause=pause,
            )
        from hermes_feishu.connection import LongConnection

        return LongConnection(
            self._client, self._intake, self._config, setup.clock, identify=self._identify, pause=pause
        )

    # --- receiving

    async def run(self, inlet: Inlet) -> None:
        """Receive until cancelled; what is being stored then is stored, and acknowledged, before this ends."""
        async with self._client.session():
            storing = asyncio.create_task(self._intake.run(inlet), name="feishu-intake")
            receiving = asyncio.create_task(self._receiving.run(inlet), name="feishu-receiving")
            try:
                done, _ = await asyncio.wait({storing, receiving}, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
            finally:
                self._intake.leave()
                await asyncio.wait({storing}, timeout=self._config.leave_s)
                storing.cancel()
                receiving.cancel()
                await asyncio.gather(storing, receiving, return_exceptions=True)

    async def _identify(self) -> None:
        """Find out which member of a group we are; quick when that is known."""
        if self._reader.our_id:
            return
        answer = await self._client.get("asking who we are", "/open-apis/bot/v3/info")
        bot = mapping_of(answer.body.get("bot"))
        our_id, status = text_of(bot.get("open_id")), bot.get("activate_status")
        if not our_id:
            raise AuthFailed("the app has no bot: add the bot ability on its page, and publish a version")
        if isinstance(status, int) and status != _ACTIVE:
            _log.warning("the bot of account %s is not switched on (activate_status %d)", self._account_id, status)
        self._reader.our_id = our_id

    # --- sending

    async def send(self, part: DeliveryPart) -> SendResult:
        """Send one part."""
        return await self._outgoing.send(part)

    async def edit(self, part: DeliveryPart, platform_message_id: str) -> SendResult:
        """Replace the whole text of a message."""
        return await self._outgoing.edit(part, platform_message_id)

    async def typing(self, target: SessionSource, *, on: bool) -> None:
        """Show, or stop showing, that an answer is being written; nothing that fails is told."""
        if target.message_id and on:
            await self._reactions.show(target.message_id)
        elif target.message_id:
            await self._reactions.hide(target.message_id)

    async def fetch(self, attachment: Attachment, source: SessionSource) -> AsyncIterator[bytes]:
        """Yield the bytes of an attachment.

        :raises RetryLater: not now. :raises Rejected: they are gone, or not for us.
        """
        try:
            resource = resource_of(attachment.reference)
        except ValueError as error:
            raise Rejected(str(error)) from None
        path = f"/open-apis/im/v1/messages/{path_part(resource.message_id)}/resources/{path_part(resource.key)}"
        async for piece in self._client.download(path, {"type": resource.type}):
            yield piece
