"""Requests to a person, who says whether a call of a dangerous tool may be made.

A request is open until somebody answers, its time is over, or its turn ends; it is answered once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.principal import ADMIN, owner_of

if TYPE_CHECKING:
    from hermes_hookspecs.ids import ApprovalId, LineageId, SessionId, SessionKey, TurnId
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.source import SessionSource

__all__ = ["APPROVED", "DENIED", "EXPIRED", "MOST_SHOWN", "OPEN", "WITHDRAWN", "Approval", "may_answer", "persons_of"]

OPEN, APPROVED, DENIED, EXPIRED, WITHDRAWN = "open", "approved", "denied", "expired", "withdrawn"
"""Statuses. *Withdrawn*: its turn ended before anybody answered, so nobody asks any more."""

MOST_SHOWN = 2000
"""Most characters of a call's arguments that are kept with a request."""


@attrs.frozen(kw_only=True)
class Approval:
    """One request, as it is stored.

    Attributes:
        arguments: the beginning of what the model wrote, at most :data:`MOST_SHOWN` characters.
        source: where the turn was asked for: who asked there may answer. asked_at, expires_at, settled_at: UTC
            milliseconds. answered_by: who answered, in words, ``""`` where nobody did.
    """

    id: ApprovalId
    lineage_id: LineageId
    session_id: SessionId
    turn_id: TurnId
    call_id: str
    tool_name: str
    effect: str
    arguments: str
    status: str
    asked_at: int
    expires_at: int
    settled_at: int | None
    session_key: SessionKey | None
    source: SessionSource
    answered_by: str = ""


def persons_of(source: SessionSource) -> frozenset[str]:
    """Return the stored forms of the one person that a source stands for; empty where it may be several."""
    known = [
        str(owner_of(attrs.evolve(source, user_id=user, user_id_alt=None, chat_type="dm"), shared=False))
        for user in (source.user_id, source.user_id_alt)
        if user
    ]
    if not known and source.chat_type == "dm":
        known = [str(owner_of(source, shared=False))]
    return frozenset(known)


def may_answer(approval: Approval, principal: Principal, source: SessionSource) -> bool:
    """Return whether somebody may answer a request: who asked for its turn, an admin, or the operator.

    In a room whose senders have no names nobody is who asked: only an admin may.

    :param source: where the answer was given.
    """
    if principal.sees_all or ADMIN in principal.roles:
        return True
    return bool(persons_of(approval.source) & persons_of(source))
