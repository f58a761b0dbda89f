"""What the platform pushes, taken apart; nothing is asked of anybody here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_feishu.client import mapping_of, text_of
from hermes_feishu.mentions import Mention, mentions_of

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["DIRECT", "RECALLED", "RECEIVED", "Envelope", "Received", "envelope_of", "identity_of", "received_of"]

RECEIVED, RECALLED = "im.message.receive_v1", "im.message.recalled_v1"
DIRECT = "p2p"

_DIRECT_NAMES = frozenset({DIRECT, "private"})


@attrs.frozen(kw_only=True)
class Envelope:
    """An event before anybody looks into it. Texts are ``""`` where the platform leaves them out.

    Attributes:
        created_at: UTC milliseconds, 0 where that is not said.
    """

    event_id: str
    type: str
    app_id: str
    token: str = attrs.field(repr=False)
    tenant: str
    created_at: int
    event: Mapping[str, object] = attrs.field(repr=False)


@attrs.frozen(kw_only=True)
class Received:
    """A message that somebody wrote.

    Attributes:
        thread_id: of the topic that it stands in. root_id, parent_id: the first message of its chain, and the one that
            it answers; every quote has both, and neither makes a topic.
        is_direct: a chat with one person. is_bot: an app wrote it. created_at: UTC milliseconds, 0 where not said.
    """

    message_id: str
    chat_id: str
    is_direct: bool
    type: str
    content: object = attrs.field(repr=False)
    thread_id: str = ""
    root_id: str = ""
    parent_id: str = ""
    mentions: tuple[Mention, ...] = ()
    open_id: str = ""
    union_id: str = ""
    app_id: str = ""
    is_bot: bool = False
    created_at: int = 0


def identity_of(message_id: str) -> str:
    """Return by what a message is known, however often and under whatever event it comes."""
    return f"message:{message_id}"


def envelope_of(payload: Mapping[str, object]) -> Envelope:
    """Return the envelope of an event of either version of the format.

    :raises ValueError: it is none.
    """
    header, event = mapping_of(payload.get("header")), mapping_of(payload.get("event"))
    if not header and payload.get("type") == "event_callback":  # the older format
        return Envelope(
            event_id=text_of(payload.get("uuid")),
            type=text_of(event.get("type")),
            app_id=text_of(event.get("app_id")),
            token=text_of(payload.get("token")),
            tenant=text_of(event.get("tenant_key")),
            created_at=0,
            event=event,
        )
    kind = text_of(header.get("event_type"))
    if not kind:
        raise ValueError("an event without a type")
    return Envelope(
        event_id=text_of(header.get("event_id")),
        type=kind,
        app_id=text_of(header.get("app_id")),
        token=text_of(header.get("token")),
        tenant=text_of(header.get("tenant_key")),
        created_at=_number(header.get("create_time")),
        event=event,
    )


def received_of(envelope: Envelope) -> Received:
    """Return the message of an event.

    :raises ValueError: it names no message, or no place.
    """
    message, sender = mapping_of(envelope.event.get("message")), mapping_of(envelope.event.get("sender"))
    ids = mapping_of(sender.get("sender_id"))
    message_id, chat_id = text_of(message.get("message_id")), text_of(message.get("chat_id"))
    if not message_id or not chat_id:
        raise ValueError("a message without an id, or without a chat")
    return Received(
        message_id=message_id,
        chat_id=chat_id,
        # what is not known to be direct is handled as a group, where more is asked for
        is_direct=message.get("chat_type") in _DIRECT_NAMES,
        type=text_of(message.get("message_type")),
        content=message.get("content"),
        thread_id=text_of(message.get("thread_id")),
        root_id=text_of(message.get("root_id")),
        parent_id=text_of(message.get("parent_id")),
        mentions=mentions_of(message.get("mentions")),
        open_id=text_of(ids.get("open_id")),
        union_id=text_of(ids.get("union_id")),
        app_id=text_of(ids.get("app_id")),
        is_bot=sender.get("sender_type") not in ("user", None, ""),
        created_at=_number(message.get("create_time")) or envelope.created_at,
    )


def _number(value: object) -> int:
    try:
        return int(value) if isinstance(value, str | int) else 0
    except ValueError:
        return 0
