"""From what the platform pushes to what the core accepts."""

from __future__ import annotations

import hashlib
import json
import re
from logging import getLogger
from typing import TYPE_CHECKING

import attrs

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.content import CARD, FORWARDED, read_content
from hermes_feishu.events import RECALLED, RECEIVED, envelope_of, identity_of, received_of
from hermes_feishu.lookups import forwarded_text
from hermes_feishu.mentions import has_placeholder, names_everybody, with_names
from hermes_feishu.recent import Recent
from hermes_hookspecs.errors import RetryLater
from hermes_hookspecs.inbox import MessageEvent
from hermes_hookspecs.source import SessionSource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_feishu.config import AccountConfig
    from hermes_feishu.content import Content
    from hermes_feishu.events import Envelope, Received
    from hermes_feishu.lookups import KeptMessage, Lookups
    from hermes_feishu.names import Names
    from hermes_hookspecs.clock import Clock

__all__ = ["EventReader"]

_log = getLogger(__name__)

_REMEMBERED = 4000
_MOST_QUOTED = 500
_COMMAND = re.compile(r"\s*/[A-Za-z][A-Za-z0-9_-]{0,31}(?:@[A-Za-z0-9_]+)?(?:\s|$)")
_QUIET = frozenset(
    {
        "card.action.trigger",
        "im.chat.access_event.bot_p2p_chat_entered_v1",
        "im.message.message_read_v1",
        "im.message.reaction.created_v1",
        "im.message.reaction.deleted_v1",
    }
)
"""Events that come often and ask for nothing."""


class EventReader:
    """Reads events of one account. For one event loop.

    Attributes:
        our_id: the bot's own ``open_id``, ``""`` until it is known: until then nothing of groups is read.
        anchors: the newest message of each topic, for who has to say something there.
        sent: messages that we sent: an answer to one of them is meant for us.
    """

    def __init__(self, account_id: str, config: AccountConfig, clock: Clock, *, lookups: Lookups, names: Names) -> None:
        self._account_id = account_id
        self._config = config
        self._lookups = lookups
        self._names = names
        self._clock = clock
        self._sources: Recent[SessionSource] = Recent(_REMEMBERED)
        self.our_id = ""
        self.anchors: Recent[str] = Recent(_REMEMBERED)
        self.sent: Recent[str] = Recent(_REMEMBERED)

    async def read(self, payload: bytes) -> MessageEvent | None:
        """Return what an event says to the core, ``None`` for one that says nothing.

        What cannot be read is an event with an error.

        :raises RetryLater: it cannot be told yet whom it is for; the platform has to send it again.
        """
        try:
            found = json.loads(payload)
            envelope = envelope_of(mapping_of(found))
            if envelope.app_id and envelope.app_id != self._config.app_id:
                _log.warning("an event of another app (%s) came to account %s", envelope.app_id[:40], self._account_id)
                return None
            if envelope.type == RECEIVED:
                return await self._message(envelope, received_of(envelope))
        except (ValueError, RecursionError) as error:
            return self.unreadable(payload, str(error) if not isinstance(error, UnicodeDecodeError) else "no text")
        if envelope.type == RECALLED:
            return self._recall(envelope)
        if envelope.type not in _QUIET:
            _log.info("an event of type %s is passed over", envelope.type[:80])
        return None

    # --- messages

    async def _message(self, envelope: Envelope, message: Received) -> MessageEvent | None:
        if not self.our_id and (message.is_bot or not message.is_direct):
            raise RetryLater("which of the group's members we are is not known yet")
        if message.open_id == self.our_id != "" or message.app_id == self._config.app_id:
            return None  # our own voice
        kept = await self._lookups.message(message.message_id) if self._says_too_little(message) else ()
        message = await self._in_its_topic(message, kept)
        content = self._content(message, kept)
        mentions = message.mentions or (kept[0].mentions if kept else ())
        event = MessageEvent(
            source=self._source(envelope, message),
            text=with_names(content.text, mentions, self.our_id),
            identities=(identity_of(message.message_id),),
            attachments=content.attachments,
            received_at=self._clock.now(),
            error=content.error or self._too_old(message),
            addressed=message.is_direct or self._is_addressed(message, content.text, mentions),
        )
        if not event.text.strip() and not event.attachments and not event.error:
            event = attrs.evolve(event, text="[empty message]")
        self._remember(message, event.source)
        return await self._with_quote(await self._with_name(event), message)

    async def _with_name(self, event: MessageEvent) -> MessageEvent:
        """Return the event with what its sender is called, where it is for us."""
        if not event.addressed or event.source.is_bot:
            return event
        name = await self._names.of(event.source.user_id or "")
        return attrs.evolve(event, source=attrs.evolve(event.source, user_name=name)) if name else event

    def _says_too_little(self, message: Received) -> bool:
        """Return whether the event leaves out what the API knows."""
        if message.type in (CARD, FORWARDED):
            return read_content(message.type, message.content, message.message_id).is_stub
        if message.is_direct or message.mentions:
            return False
        return has_placeholder(text_of(message.content))

    async def _in_its_topic(self, message: Received, kept: Sequence[KeptMessage]) -> Received:
        """Return the message with the topic that it stands in, where its event forgot to name it.

        A quote names a root as well: it counts only where each message of the group stands in a topic.
        """
        if message.thread_id or message.is_direct or not message.root_id:
            return message
        if not await self._lookups.is_topic_chat(message.chat_id):
            return message
        kept = kept or await self._lookups.message(message.message_id)
        return attrs.evolve(message, thread_id=(kept[0].thread_id if kept else "") or message.root_id)

    def _content(self, message: Received, kept: Sequence[KeptMessage]) -> Content:
        content = read_content(message.type, message.content, message.message_id)
        if content.is_stub and kept:
            if message.type == FORWARDED:
                return attrs.evolve(content, text=forwarded_text(kept, self.our_id) or content.text)
            return read_content(kept[0].type, kept[0].content, message.message_id)
        if content.is_stub and message.type == FORWARDED:
            return attrs.evolve(content, text="[forwarded messages, which could not be read]")
        return content

    def _is_addressed(self, message: Received, text: str, mentions: Sequence[object]) -> bool:
        if any(getattr(one, "open_id", "") == self.our_id for one in mentions):
            return True
        if self._config.mention_all and names_everybody(text):
            return True
        return message.parent_id in self.sent or _COMMAND.match(text) is not None

    async def _with_quote(self, event: MessageEvent, message: Received) -> MessageEvent:
        """Return the event with what it quotes in front, as far as that can be had; commands stay as they are."""
        is_quote = message.parent_id and not message.thread_id
        if not is_quote or not event.addressed or event.error or message.parent_id in self.sent:
            return event
        if _COMMAND.match(event.text):
            return event
        kept = await self._lookups.message(message.parent_id)
        if not kept:
            return event
        quoted = read_content(kept[0].type, kept[0].content, message.parent_id)
        words = forwarded_text(kept, self.our_id) or with_names(quoted.text, kept[0].mentions, self.our_id)
        lines = [f"> {line}" for line in words[:_MOST_QUOTED].splitlines() if line.strip()]
        return attrs.evolve(
            event,
            text="\n".join(lines) + f"\n\n{event.text}" if lines else event.text,
            attachments=(*quoted.attachments, *event.attachments),
        )

    def _too_old(self, message: Received) -> str:
        limit, age_ms = self._config.max_age_minutes, self._clock.now() - message.created_at
        if not limit or not message.created_at or age_ms <= limit * 60_000:
            return ""
        _log.info("message %s is %d minutes old and is put aside", message.message_id, age_ms // 60_000)
        return f"it came {age_ms // 60_000} minutes late; max_age_minutes = {limit:g}"

    # --- sources

    def _source(self, envelope: Envelope, message: Received) -> SessionSource:
        return SessionSource(
            platform="feishu",
            account_id=self._account_id,
            chat_type="dm" if message.is_direct else "group",
            scope_id=envelope.tenant,
            chat_id=message.chat_id,
            thread_id=message.thread_id,
            user_id=message.open_id,
            user_id_alt=message.union_id,
            message_id=message.message_id,
            is_bot=message.is_bot,
        )

    def _remember(self, message: Received, source: SessionSource) -> None:
        self._sources.put(message.message_id, source)
        if message.thread_id:
            self.anchors.put(message.thread_id, message.message_id)

    # --- what else comes

    def _recall(self, envelope: Envelope) -> MessageEvent | None:
        """Return that a message was taken back. Its event names no sender: that is remembered, or not known.

        It leads to no message: what was taken back cannot be answered.
        """
        message_id, chat_id = text_of(envelope.event.get("message_id")), text_of(envelope.event.get("chat_id"))
        if not message_id or not chat_id:
            return None
        source = self._sources.get(message_id) or SessionSource(
            platform="feishu", account_id=self._account_id, chat_type="group", scope_id=envelope.tenant, chat_id=chat_id
        )
        return MessageEvent(
            source=attrs.evolve(source, message_id=None),
            text="",
            identities=(f"event:{envelope.event_id or 'recall:' + message_id}",),
            received_at=self._clock.now(),
            recalls=identity_of(message_id),
        )

    def unreadable(self, payload: bytes, reason: str) -> MessageEvent:
        """Return what says that something came, and why nobody can read it."""
        _log.warning("account %s was sent something that cannot be read: %s", self._account_id, reason[:200])
        return MessageEvent(
            source=SessionSource(platform="feishu", account_id=self._account_id),
            text="",
            identities=(f"unreadable:{hashlib.sha256(payload).hexdigest()}",),
            received_at=self._clock.now(),
            error=f"an event that cannot be read: {reason[:200]}",
        )
