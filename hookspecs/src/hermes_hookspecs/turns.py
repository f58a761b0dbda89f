"""Turns and the lease that makes one of them the only one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.source import Entrance

__all__ = [
    "ACTIVE",
    "DEAD",
    "DONE",
    "FAILED",
    "INTERRUPTED",
    "OUTCOMES",
    "STOPPED",
    "Fence",
    "Lease",
    "LeaseHolder",
    "LeaseStamp",
    "RecordedUsage",
    "Turn",
    "Usage",
]

ACTIVE = "active"
DONE = "done"
FAILED = "failed"
STOPPED = "stopped"
INTERRUPTED = "interrupted"
DEAD = "its process ended"
"""Reason of a turn, or a job, that was found at work without a living process."""
OUTCOMES = (DONE, FAILED, STOPPED, INTERRUPTED)
"""How a turn ends: by itself, by an exception, by a revoke, or by the death of its process."""


@attrs.frozen(kw_only=True)
class LeaseHolder:
    """Who holds a lease, precisely enough to know whether the process still lives.

    ``pid`` and ``started`` compare only inside one boot and one pid namespace.

    Attributes:
        host: name, for people. boot_id: of the running kernel. pid_namespace: its number, ``""`` where there is none.
        started: start time of the process in the system's own unit; tells two users of one pid apart.
        entrance: the door it serves. session_key: the address of the message that began the turn.
    """

    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    started: str
    entrance: Entrance
    session_key: SessionKey | None = None

    def describe(self) -> str:
        """Return one phrase for people."""
        return f"{self.entrance} (process {self.pid} on {self.host})"


@attrs.frozen
class LeaseStamp:
    """The two numbers that must stay unchanged for a waiter to believe that a holder is dead.

    Each step that is stored counts as a renewal, so an equal stamp also means that the turn is as it was seen.
    """

    token: int
    renewals: int


@attrs.frozen(kw_only=True)
class Lease:
    """The right to run a turn on a lineage; ``holder`` is ``None`` when it is free.

    ``expires_at`` is for display: nobody steals by wall clock. ``ttl_ms`` is what its last holder promised: how long it
    lives without a renewal.
    """

    lineage_id: LineageId
    token: int
    renewals: int
    holder: LeaseHolder | None
    acquired_at: int | None
    expires_at: int | None
    ttl_ms: int | None = None

    @property
    def stamp(self) -> LeaseStamp:
        """Return what a waiter compares."""
        return LeaseStamp(self.token, self.renewals)


@attrs.frozen
class Fence:
    """What every write of a turn shows: checked in the write's own transaction."""

    lineage_id: LineageId
    turn_id: TurnId
    token: int


@attrs.frozen(kw_only=True)
class Usage:
    """Tokens and money of one model call or turn; unknown numbers are ``None``.

    Attributes:
        input_tokens: the whole prompt as the model read it, what came out of a cache included: the number that a
            context window is compared with. cache_read_tokens, cache_write_tokens: the parts of it that were read
            from, and written to, the endpoint's cache. output_tokens: all that was written, reasoning included.
        estimated_cost_usd: ``None`` where the price is not known: never 0 for that. A sum is unknown as soon as one
            of its parts is.
    """

    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    estimated_cost_usd: float | None = None


@attrs.frozen(kw_only=True)
class RecordedUsage:
    """Usage as it was stored: when (UTC milliseconds), and whether the turn had ended by then."""

    usage: Usage
    at: int
    late: bool


@attrs.frozen(kw_only=True)
class Turn:
    """One load, run, store; where its rows came from.

    Attributes:
        inbox_ids: what it answers, in order of acceptance; empty for a turn without a message.
        user_id, user_name: sender as the platform named them.
        attempt: 1 for the first try of its oldest message.
        outcome: :data:`ACTIVE` or one of :data:`OUTCOMES`. reason: one line for ends other than ``done``.
    """

    id: TurnId
    lineage_id: LineageId
    session_id: SessionId
    token: int
    entrance: Entrance
    session_key: SessionKey | None
    user_id: str | None
    user_name: str | None
    inbox_ids: tuple[InboxId, ...]
    started_at: int
    ended_at: int | None
    outcome: str
    reason: str
    attempt: int
