"""Answers stored and not yet delivered.

A delivery is one text for one place, with the files that go along; its target is frozen when it is stored. It goes out
in parts, each with an idempotency key that is minted once, in order per (account, chat, thread).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.encoding import encode_text

if TYPE_CHECKING:
    from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, SessionKey, TurnId
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.source import KeyPolicy, SessionSource
    from hermes_hookspecs.turns import LeaseHolder

__all__ = [
    "ANSWER",
    "DROPPED",
    "FAILED",
    "JOINED",
    "NOTICE",
    "OPEN_STATES",
    "REPLY",
    "SENDING",
    "SENT",
    "WAITING",
    "Delivery",
    "DeliveryDraft",
    "OpenedThread",
    "PartDraft",
    "StoredPart",
    "address_of",
    "delivery_key",
]

WAITING, SENDING, SENT, FAILED, DROPPED = "waiting", "sending", "sent", "failed", "dropped"
JOINED = "joined"
"""It goes out with an older delivery of its address, whose state tells of both; ``error`` says with which."""
OPEN_STATES = (WAITING, SENDING)
"""States in which a delivery holds its place; those behind it at the same address wait."""

ANSWER, NOTICE, REPLY = "answer", "notice", "reply"
"""Kinds: of a turn; of the product itself (parked, overflow, stopped); of a command."""


def delivery_key(owner: str, message: str | int) -> str:
    """Return the idempotency key of what answers one message: the same whoever computes it, in any process.

    :param owner: lineage id; the session key where there is no lineage.
    :param message: the inbox row, or the platform's identity of a message that was not taken.
    """
    from hashlib import sha256

    return sha256(f"{len(owner)}:{owner}:{message}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def address_of(target: SessionSource) -> str:
    """Return the address within which deliveries keep their order: platform, account, scope, chat, thread.

    A direct chat without an id of its own is its participant.
    """
    chat = target.chat_id or target.participant or ""
    parts = (target.platform, target.account_id, target.scope_id or "", chat, target.thread_id or "")
    return ":".join(encode_text(part) for part in parts)


@attrs.frozen(kw_only=True)
class DeliveryDraft:
    """A text to be delivered.

    Attributes:
        key: of :func:`delivery_key`; a delivery with a known key is not stored again, whatever it says.
        target: the place, frozen here. inbox_id: the message it answers, the oldest one of its turn.
        kind: :data:`ANSWER`, :data:`NOTICE` or :data:`REPLY`.
        files: what goes along, behind the text. Their bytes are in the attachment store by then, and its lineage refers
            to them.
    """

    key: str
    target: SessionSource
    text: str
    session_key: SessionKey
    lineage_id: LineageId | None = None
    turn_id: TurnId | None = None
    inbox_id: InboxId | None = None
    kind: str = ANSWER
    files: tuple[Attachment, ...] = ()


@attrs.frozen(kw_only=True)
class PartDraft:
    """One part of a delivery, as it was split for its platform.

    Attributes:
        file: what the part is; its text is then what stands for it where it cannot be sent.
    """

    text: str
    format: str = "text"
    file: Attachment | None = None


@attrs.frozen(kw_only=True)
class StoredPart:
    """One part. ``key`` is minted when the delivery is split and never changes; ``sent_at`` is ``None`` until then."""

    index: int
    text: str
    format: str
    key: str
    sent_at: int | None = None
    platform_message_id: str | None = None
    possible_repeat: bool = False
    file: Attachment | None = None


@attrs.frozen(kw_only=True)
class Delivery:
    """A stored delivery.

    Attributes:
        status: :data:`WAITING`, :data:`SENDING`, :data:`SENT`, :data:`FAILED`, :data:`DROPPED` or :data:`JOINED`.
        attempt: claims so far; a write of the claiming attempt names it. owner: who sends, or sent last.
        failures: how often sending failed since it was stored or retried by a person; sets the back-off.
        due_at: UTC milliseconds before which it is not sent. awaits_inbound: it waits for a message from its address.
        uncertain: its first unsent part may have gone out in an attempt whose outcome nobody knows.
        error: one line, of the last failure.
        parts: in order; empty until it is split. files: as they were stored.
    """

    id: DeliveryId
    key: str
    target: SessionSource
    text: str
    session_key: SessionKey
    lineage_id: LineageId | None
    turn_id: TurnId | None
    inbox_id: InboxId | None
    kind: str
    status: str
    attempt: int
    failures: int
    owner: LeaseHolder | None
    created_at: int
    due_at: int
    awaits_inbound: bool
    uncertain: bool
    error: str
    settled_at: int | None
    parts: tuple[StoredPart, ...]
    files: tuple[Attachment, ...] = ()

    def is_due(self, now: int) -> bool:
        """Return whether its time has come: one that was never put off is due whatever the wall clock does."""
        return self.due_at <= max(now, self.created_at)

    @property
    def is_possible_repeat(self) -> bool:
        """Return whether any part may have reached its reader twice."""
        return any(part.possible_repeat for part in self.parts)


@attrs.frozen(kw_only=True)
class OpenedThread:
    """The route of a thread that a delivery opened: bound to the delivery's lineage unless it leads somewhere."""

    key: SessionKey
    key_version: int
    source: SessionSource
    policy: KeyPolicy
