"""Why, and when, a conversation ends by itself: for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import LineageId, SessionId, SessionKey

__all__ = ["ClosesLineages", "ResetExplanation", "ResetValue"]


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


class ClosesLineages(Protocol):
    """What an agent may be able to do beside answering: let go of what it holds for one conversation.

    An agent that keeps something open for each conversation (a sandbox, a browser, a model server's session) has this
    method. It need not say so anywhere.
    """

    def close_lineage(self, lineage_id: LineageId) -> object:
        """Let go of everything that is held for a conversation that a reset has let go of.

        Called once, behind the reset's transaction, on a thread of its own: it may block, and may be ``async``, on a
        loop of that thread. It has ``[session_reset] cleanup_timeout_s``; then it is left behind. Nobody waits for it,
        and an exception is logged. The conversation is kept: somebody may go on in it later.
        """
        ...
