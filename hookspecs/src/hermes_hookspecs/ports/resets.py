"""Why, and when, a conversation ends by itself: for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionId, SessionKey

__all__ = ["ResetExplanation", "ResetValue"]


@attrs.frozen(kw_only=True)
class ResetValue:
    """One setting in force for a conversation: its value in the spelling of the file, and where it was set."""

    key: str
    value: str
    origin: str


@attrs.frozen(kw_only=True)
class ResetExplanation:
    """What the policy in force says of what a key leads to. Times are UTC milliseconds.

    Attributes:
        values: settings in force, the mode first. known: whether the policy is installed; where not nothing is reset.
        lineage_id, session_id, title: what the key leads to; ``None`` after a reset.
        last_activity: the last use of it, from which the policy counts.
        verdict: ``keep``, ``reset`` (with the next message, or the next sweep), ``defer``, or ``nothing`` to reset.
        reason: why, ``""`` where there is nothing to say.
        next_at: the first moment at which it may be reset; ``None`` for never, or not known.
        pins: what runs and holds it; stale: what runs too long to hold it. zone: name of the zone that is counted in.
    """

    session_key: SessionKey
    lineage_id: LineageId | None
    session_id: SessionId | None
    title: str | None
    values: tuple[ResetValue, ...]
    known: bool
    last_activity: int | None
    verdict: str
    reason: str
    next_at: int | None
    pins: tuple[str, ...]
    stale: tuple[str, ...]
    zone: str
