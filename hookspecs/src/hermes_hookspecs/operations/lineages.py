"""Writes of routes and lineages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.operations.operation import Operation

if TYPE_CHECKING:
    from hermes_hookspecs.ids import InboxId, LineageId, SessionId, SessionKey
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.principal import Owner
    from hermes_hookspecs.sessions import (
        Lineage,
        SessionEntry,  # noqa: F401 - named in a subscript, which linters do not read
    )
    from hermes_hookspecs.source import KeyPolicy, SessionSource
    from hermes_hookspecs.state import StateUpdate
    from hermes_hookspecs.turns import LeaseStamp, Turn

__all__ = [
    "BindRoute",
    "Claim",
    "Delete",
    "Deleted",
    "ForgetRoute",
    "GetOrCreate",
    "ReleaseRoute",
    "Released",
    "Rename",
    "SetFlags",
]


@attrs.frozen(kw_only=True)
class Claim:
    """A legacy key whose route may be taken over: data, compared and set by the store.

    Attributes:
        key: exact key of the older route.
        scope_id: the route's recorded scope must equal it; ``None`` demands that none was recorded.
        user_id: where the route has recorded a person, it must be this one; ``""`` fits none, ``None`` anybody.
    """

    key: SessionKey
    scope_id: str | None = None
    user_id: str | None = None

    def fits(self, recorded: SessionSource) -> bool:
        """Return whether a route with that source may be taken over."""
        is_theirs = self.user_id is None or recorded.user_id is None or recorded.user_id == self.user_id
        return recorded.scope_id == self.scope_id and is_theirs


@attrs.frozen(kw_only=True)
class GetOrCreate(Operation["SessionEntry"]):
    """Return what ``key`` leads to; create lineage, session and route where it leads nowhere.

    A live route is followed to its lineage's tip. Else the first claim whose route is there and fits is moved to
    ``key``; where no scope was recorded and the message has one, owner, room and source of its lineage get it, too.
    The journal (:class:`~hermes_hookspecs.sessions.RouteMove`) has a line for the claim, and one for each route that
    was asked for and did not fit. Else a lineage ``lineage_id`` with session ``session_id`` is made; a title that waits
    on the route becomes its title. Pending inbox rows of ``key`` without a lineage get it.

    Attributes:
        observed: with ``force_new``: the lineage that the caller saw behind the key (``None``: none). A route that
            leads elsewhere by now wins, so that callers who force at once get one new session.
        force_new: do not reuse; the old lineage's tip ends as ``new_session`` when no route leads to it any more.
        touch: moves the lineage's last activity to ``now``.
        bind: make a route; without it the key is only written down as an address.
        carry: the summary with which the session begins that this makes: its first row, of no turn. Not written
            where the key leads to a session.
    """

    key: SessionKey
    key_version: int
    source: SessionSource
    owner: Owner
    policy: KeyPolicy
    shared: bool
    now: int
    session_id: SessionId
    lineage_id: LineageId
    force_new: bool = False
    observed: LineageId | None = None
    touch: bool = True
    bind: bool = True
    claims: tuple[Claim, ...] = ()
    carry: MessageDraft | None = None


@attrs.frozen(kw_only=True)
class BindRoute(Operation["SessionEntry"]):
    """Let ``key`` lead to an existing lineage (resume, handoff) and reopen its tip.

    The lineage that the route left ends its tip as ``session_switch`` when no route leads to it any more. A lineage
    that was said in one room alone and is bound at another place is private from then on (``Lineage.room``).

    Attributes:
        expected: with ``check``: the lineage the route must lead to now, else :class:`Conflict`.
        carry: ``True`` takes the key's pending inbox rows along; ``False`` settles those older than ``control_id``
            as superseded and takes the younger ones along.

    :raises SessionNotFound: no such lineage.
    """

    key: SessionKey
    key_version: int
    source: SessionSource
    policy: KeyPolicy
    lineage_id: LineageId
    now: int
    check: bool = False
    expected: LineageId | None = None
    carry: bool = True
    control_id: InboxId | None = None


@attrs.frozen(kw_only=True)
class Released:
    """What a release did. ``lineage`` is ``None`` when the route led nowhere.

    Attributes:
        stopped: the turn of this key that was revoked. superseded: waiting rows that were settled.
    """

    lineage: Lineage | None
    stopped: Turn | None
    superseded: int


@attrs.frozen(kw_only=True)
class ReleaseRoute(Operation[Released]):
    """Let ``key`` lead nowhere (``/new``, a reset policy); the next message makes a session. No history is lost.

    A running turn that this key began is revoked in the same transaction. The tip ends with ``reason`` when no
    other route leads to its lineage. Pending rows of the key older than ``control_id`` (all, when ``None``) are
    settled as superseded; younger ones wait for the session to come. What holds for the conversation alone
    (:data:`~hermes_hookspecs.state.CONVERSATION`) goes when no other route leads to it.

    Attributes:
        title: waits on the route for the session to come. expected: as in :class:`BindRoute`.
        state: written in the same transaction.
        quiet_since: a route is let go of only while it is quiet, else :class:`Conflict`: neither its lineage nor the
            route itself was used later than this (UTC milliseconds), no turn is active, and no message waits there.
    """

    key: SessionKey
    now: int
    reason: str
    title: str | None = None
    check: bool = False
    expected: LineageId | None = None
    control_id: InboxId | None = None
    quiet_since: int | None = None
    state: tuple[StateUpdate, ...] = ()


@attrs.frozen(kw_only=True)
class ForgetRoute(Operation[bool]):
    """Remove the route of a key that nobody will use again; return whether there was one.

    The lineage goes on as it is, for whoever resumes it. For entrances that live as long as one process.
    """

    key: SessionKey
    now: int


@attrs.frozen(kw_only=True)
class Rename(Operation["str | None"]):
    """Give a lineage a clean title (``None`` takes it away) and return the title it has now.

    ``origin`` ``user``: another lineage of the same owner with that title is :class:`TitleError`. ``auto``: written
    only where there is no title, with `` #2``, `` #3`` ... behind it where it is taken; never over a person's.

    Attributes:
        session_id: with ``auto``: a job for a session that is no longer the tip writes nothing.

    :raises SessionNotFound: no such lineage.
    """

    lineage_id: LineageId
    title: str | None
    origin: str
    now: int
    session_id: SessionId | None = None


@attrs.frozen(kw_only=True)
class SetFlags(Operation["Lineage"]):
    """Pin or archive a lineage; ``None`` leaves a flag as it is. Needs no lease.

    :raises SessionNotFound: no such lineage.
    """

    lineage_id: LineageId
    now: int
    pinned: bool | None = None
    archived: bool | None = None


@attrs.frozen(kw_only=True)
class Deleted:
    """What a delete removed."""

    lineage_id: LineageId
    sessions: int
    messages: int


@attrs.frozen(kw_only=True)
class Delete(Operation[Deleted]):
    """Remove a lineage with all that hangs on it; routes to it lead nowhere afterwards.

    What was not taken into a turn of it is not part of it: pending messages, and control rows that are not done, wait
    without a lineage. Its other inbox rows are done and lose their content; their identities stay known until they
    are swept, so that nothing that is delivered again is new.

    Attributes:
        presumed_dead: stamp of a lease whose holder is known to be dead. force: revoke a live holder first.

    :raises LeaseBusy: a turn is running. :raises SessionNotFound: no such lineage.
    """

    lineage_id: LineageId
    now: int
    presumed_dead: LeaseStamp | None = None
    force: bool = False
