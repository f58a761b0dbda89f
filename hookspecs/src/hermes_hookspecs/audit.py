"""What tools did: one row per call, with who, where, what, how it went and how long it took."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from hermes_hookspecs.ids import ApprovalId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.source import Entrance

__all__ = [
    "ANSWERED",
    "BROKEN_OFF",
    "CALL_OUTCOMES",
    "FAILED",
    "MOST_ARGUMENTS",
    "MOST_RESULT",
    "REFUSED",
    "RUNNING",
    "TIMED_OUT",
    "AuditEntry",
    "AuditFilter",
    "AuditRow",
]

RUNNING, ANSWERED, FAILED, REFUSED, TIMED_OUT, BROKEN_OFF = (
    "running",
    "answered",
    "failed",
    "refused",
    "timed out",
    "broken off",
)
CALL_OUTCOMES = (RUNNING, ANSWERED, FAILED, REFUSED, TIMED_OUT, BROKEN_OFF)
"""How a call stands. *Refused*: not made, by a person or because it could not be. *Broken off*: its turn ended without
a result, so whether it did anything is unknown."""

MOST_ARGUMENTS, MOST_RESULT = 2000, 500
"""Most characters that are kept of a call."""


@attrs.frozen(kw_only=True)
class AuditEntry:
    """What a turn says about one of its calls: once when it is asked for, once when it has its result.

    Attributes:
        outcome: one of :data:`CALL_OUTCOMES` but *broken off*. started_at: UTC milliseconds. duration_ms: ``None``
            while it runs. arguments, result: cut by whoever makes the entry. approval_id: the request that was made
            for it.
    """

    call_id: str
    tool_name: str
    effect: str
    arguments: str
    started_at: int
    outcome: str = RUNNING
    duration_ms: int | None = None
    result: str = ""
    approval_id: ApprovalId | None = None


@attrs.frozen(kw_only=True)
class AuditRow:
    """One call as it is stored, with where its turn came from.

    Attributes:
        id: orders the rows. late: its turn had lost its lease by the time of the result.
        arguments, result: ``""`` once the lineage is deleted; who called what stays until its time is over.
    """

    id: int
    lineage_id: LineageId
    session_id: SessionId
    turn_id: TurnId
    entry: AuditEntry
    late: bool
    entrance: Entrance
    session_key: SessionKey | None
    user_id: str | None
    user_name: str | None


@attrs.frozen(kw_only=True)
class AuditFilter:
    """Which rows: those that meet every condition that is given.

    Attributes:
        person: user id or name, exactly. since, until: UTC milliseconds of the beginning of a call; ``until`` is not
            included.
    """

    lineage_id: LineageId | None = None
    session_id: SessionId | None = None
    tool_name: str | None = None
    person: str | None = None
    outcome: str | None = None
    since: int | None = None
    until: int | None = None
