"""Identities, kept apart by type so that a key is never taken for an id.

A *session key* is an address computed from a source; a *session id* and a *lineage id* are given once and never
recomputed. All are opaque text, compared byte for byte.
"""

from __future__ import annotations

from typing import NewType

__all__ = [
    "ID_LIMIT",
    "ApprovalId",
    "DeliveryId",
    "InboxId",
    "JobId",
    "LineageId",
    "MessageId",
    "SessionId",
    "SessionKey",
    "TurnId",
    "check_id",
    "new_approval_id",
    "new_batch_id",
    "new_job_id",
    "new_lineage_id",
    "new_session_id",
    "new_turn_id",
]

SessionKey = NewType("SessionKey", str)
"""Routing key: at most 512 characters, grammar in ``design.md`` section 5."""
SessionId = NewType("SessionId", str)
"""One segment of a lineage: ``YYYYMMDD_HHMMSS_`` and 8 hexadecimal digits when the product makes it."""
LineageId = NewType("LineageId", str)
"""The chain of segments of one conversation: ``L`` and a session id; given at creation."""
TurnId = NewType("TurnId", str)
"""One load, run, store: ``T`` and a session id."""
MessageId = NewType("MessageId", int)
"""A stored row. Rows are ordered by it, never by time."""
InboxId = NewType("InboxId", int)
"""A row of the inbox, in order of acceptance."""
DeliveryId = NewType("DeliveryId", int)
"""A row of the outbox, in order of storing."""
ApprovalId = NewType("ApprovalId", str)
"""What a person types to answer a request: five letters and digits that are not mistaken for each other."""
JobId = NewType("JobId", str)
"""Work that outlives its turn: ``J`` and a session id."""

ID_LIMIT = 200
"""Most characters of an id that somebody else chose."""


def _stamp(now: int) -> str:
    from time import gmtime, strftime

    return strftime("%Y%m%d_%H%M%S", gmtime(now / 1000))


def _random(count: int) -> str:
    from os import urandom

    return urandom(count).hex()


def new_session_id(now: int) -> SessionId:
    """Return a fresh id that begins with the UTC time ``now`` (milliseconds)."""
    return SessionId(f"{_stamp(now)}_{_random(4)}")


def new_lineage_id(now: int) -> LineageId:
    """Return a fresh lineage id that begins with the UTC time ``now`` (milliseconds)."""
    return LineageId(f"L{_stamp(now)}_{_random(6)}")


def new_turn_id(now: int) -> TurnId:
    """Return a fresh turn id that begins with the UTC time ``now`` (milliseconds)."""
    return TurnId(f"T{_stamp(now)}_{_random(6)}")


def new_approval_id() -> ApprovalId:
    """Return a fresh id, short enough to be typed on a telephone."""
    from os import urandom

    letters = "23456789abcdefghjkmnpqrstuvwxyz"
    number = int.from_bytes(urandom(8))
    return ApprovalId("".join(letters[number // len(letters) ** place % len(letters)] for place in range(5)))


def new_job_id(now: int) -> JobId:
    """Return a fresh job id that begins with the UTC time ``now`` (milliseconds)."""
    return JobId(f"J{_stamp(now)}_{_random(4)}")


def new_batch_id(now: int) -> str:
    """Return a fresh name of what is done together, which begins with the UTC time ``now`` (milliseconds)."""
    return f"B{_stamp(now)}_{_random(4)}"


def check_id(value: str) -> str:
    """Return ``value`` when it may be an id that a caller chose.

    :raises ValueError: empty, longer than :data:`ID_LIMIT`, with control characters, or with a lone surrogate.
    """
    if not value or value != value.strip():
        raise ValueError("an id is empty or has blanks at its ends")
    if len(value) > ID_LIMIT:
        raise ValueError(f"an id has {len(value)} characters, at most {ID_LIMIT} are allowed")
    if any(ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or 0xD800 <= ord(c) < 0xE000 for c in value):
        raise ValueError("an id has control characters or half a surrogate pair")
    return value
