"""Routes: get or create, bind, release, and the policy that made the keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.closing import revoke_lease
from hermes_core.storage.memory.moves import note_claim, note_refusals
from hermes_core.storage.memory.plugin_state import write_state
from hermes_core.storage.memory.tables import entry_of
from hermes_core.storage.memory.titles import free_title
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.inbox import SUPERSEDED
from hermes_hookspecs.operations import ACTIVITY_RESOLUTION_MS, Released, Revoke
from hermes_hookspecs.principal import room_of
from hermes_hookspecs.sessions import Lineage, Route, Session
from hermes_hookspecs.state import CONVERSATION
from hermes_hookspecs.turns import ACTIVE, Lease

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.operations import BindRoute, Branch, ForgetRoute, GetOrCreate, ReleaseRoute
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.turns import Turn

__all__ = ["bind_route", "forget_route", "get_or_create", "lead", "release_route"]


def get_or_create(tables: Tables, operation: GetOrCreate) -> SessionEntry:
    """Run :class:`~hermes_hookspecs.operations.GetOrCreate`."""
    if not operation.bind:
        return _create(tables, operation, title=None)
    route = tables.routes.get(operation.key)
    current = _lineage_of(route)
    if current is not None and not (operation.force_new and current == operation.observed):
        return _hit(tables, operation, current)
    if current is None and not operation.force_new:
        claimed = _claim(tables, operation)
        if claimed is not None:
            return claimed
        note_refusals(tables, operation)
    return _create_and_bind(tables, operation, current)


def _lineage_of(route: Route | None) -> LineageId | None:
    return None if route is None else route.lineage_id


def _hit(
    tables: Tables, operation: GetOrCreate, lineage_id: LineageId, claimed: SessionKey | None = None
) -> SessionEntry:
    last = tables.lineages[lineage_id].last_activity
    if operation.touch and operation.now - last >= ACTIVITY_RESOLUTION_MS:
        tables.touch(lineage_id, operation.now)
        route = tables.routes[operation.key]
        tables.routes[operation.key] = attrs.evolve(route, updated_at=operation.now)
    tables.adopt_waiting(operation.key, lineage_id)
    return entry_of(tables, lineage_id, operation.key, claimed=claimed)


def _claim(tables: Tables, operation: GetOrCreate) -> SessionEntry | None:
    for claim in operation.claims:
        old = tables.routes.get(claim.key)
        if old is None or old.lineage_id is None or not claim.fits(old.source):
            continue
        note_claim(tables, operation, claim, old.lineage_id)
        del tables.routes[claim.key]
        lead(tables, operation, old.lineage_id)
        for item in tables.pending(key=claim.key):
            tables.give_lineage(item, old.lineage_id)
        return _hit(tables, operation, old.lineage_id, claimed=claim.key)
    return None


def _create_and_bind(tables: Tables, operation: GetOrCreate, left: LineageId | None) -> SessionEntry:
    route = tables.routes.get(operation.key)
    entry = _create(tables, operation, title=None if route is None else route.pending_title)
    bound = lead(tables, operation, entry.lineage_id)
    tables.routes[operation.key] = attrs.evolve(bound, pending_title=None)
    tables.adopt_waiting(operation.key, entry.lineage_id)
    if left is not None:
        tables.end_tip(left, "new_session", operation.now)
    return entry


def _create(tables: Tables, operation: GetOrCreate, *, title: str | None) -> SessionEntry:
    known = tables.sessions.get(operation.session_id)
    if known is not None:  # a repetition: the ids are fresh, so nobody else can have made it
        return entry_of(tables, known.lineage_id, operation.key)
    source, lineage_id = operation.source, operation.lineage_id
    title = None if title is None else free_title(tables, operation.owner, title)
    tables.sessions[operation.session_id] = Session(
        id=operation.session_id,
        lineage_id=lineage_id,
        source=source.platform,
        account_id=source.account_id,
        user_id=source.participant,
        title=title,
        started_at=operation.now,
    )
    tables.lineages[lineage_id] = Lineage(
        id=lineage_id,
        tip=operation.session_id,
        owner=operation.owner,
        source=source,
        shared=operation.shared,
        title=title,
        title_origin=None if title is None else "user",
        pinned=False,
        archived=False,
        created_at=operation.now,
        last_activity=operation.now,
        message_count=0,
        turn_count=0,
        segments=1,
        preview="",
        version=1,
        room=room_of(source),
    )
    tables.transcripts[lineage_id] = ()
    tables.leases[lineage_id] = Lease(
        lineage_id=lineage_id, token=0, renewals=0, holder=None, acquired_at=None, expires_at=None
    )
    if operation.carry is not None:
        tables.add_rows(lineage_id, operation.session_id, None, (operation.carry,), operation.now)
    tables.note_lineage(lineage_id, operation.now)
    return entry_of(tables, lineage_id, operation.key, created=True)


def lead(tables: Tables, operation: GetOrCreate | BindRoute | Branch, lineage_id: LineageId) -> Route:
    """Let the operation's key lead to a lineage; a route that is there keeps its creation and its waiting title."""
    old = tables.routes.get(operation.key)
    route = Route(
        key=operation.key,
        source=operation.source,
        lineage_id=lineage_id,
        key_version=operation.key_version,
        policy=operation.policy,
        created_at=operation.now if old is None else old.created_at,
        updated_at=operation.now,
        pending_title=None if old is None else old.pending_title,
    )
    tables.routes[operation.key] = route
    return route


def _check(operation: BindRoute | ReleaseRoute, current: LineageId | None) -> None:
    if operation.check and current != operation.expected:
        raise Conflict(f"{operation.key} leads to {current} by now, not to {operation.expected}; look again")


def bind_route(tables: Tables, operation: BindRoute) -> SessionEntry:
    """Run :class:`~hermes_hookspecs.operations.BindRoute`."""
    target = tables.lineage(operation.lineage_id).id
    left = _lineage_of(tables.routes.get(operation.key))
    _check(operation, left)
    superseded = 0
    if left != target:
        lead(tables, operation, target)
        for item in tables.pending(key=operation.key):
            if item.lineage_id not in {left, None}:
                continue
            if operation.carry or not _is_before(item, operation.control_id):
                tables.give_lineage(item, target)
            else:
                tables.settle(item, SUPERSEDED, operation.now)
                superseded += 1
        if left is not None:
            tables.end_tip(left, "session_switch", operation.now)
    tables.said_at(target, operation.source, operation.now)
    if tables.reopen_tip(target):
        tables.bump(target)
    return attrs.evolve(entry_of(tables, target, operation.key), superseded=superseded)


def _is_before(item: InboxItem, control_id: InboxId | None) -> bool:
    return control_id is None or item.id < control_id


def release_route(tables: Tables, operation: ReleaseRoute) -> Released:
    """Run :class:`~hermes_hookspecs.operations.ReleaseRoute`."""
    route = tables.routes.get(operation.key)
    left = _lineage_of(route)
    _check(operation, left)
    if route is not None and left is not None and not _is_quiet(tables, route, left, operation.quiet_since):
        raise Conflict(f"{operation.key} is not quiet any more; look again")
    if route is not None and operation.title is not None:
        tables.routes[operation.key] = route = attrs.evolve(route, pending_title=operation.title)
    stopped: Turn | None = None
    if route is not None and left is not None:
        tables.routes[operation.key] = attrs.evolve(
            route, lineage_id=None, updated_at=operation.now, pending_title=operation.title
        )
        if _runs(tables, left, operation.key):
            stopped = revoke_lease(tables, Revoke(lineage_id=left, now=operation.now, reason=operation.reason))
    for update in operation.state:
        write_state(tables, update, operation.now)
    superseded = _settle_waiting(tables, operation)
    if left is None:
        return Released(lineage=None, stopped=None, superseded=superseded)
    tables.end_tip(left, operation.reason, operation.now)
    if not tables.is_routed(left):
        _forget_conversation(tables, left)
    return Released(lineage=tables.lineages[left], stopped=stopped, superseded=superseded)


def _settle_waiting(tables: Tables, operation: ReleaseRoute) -> int:
    """Settle what waits before the command, let the rest wait for the session to come; return how many went."""
    superseded = 0
    for item in tables.pending(key=operation.key):
        if _is_before(item, operation.control_id):
            tables.settle(item, SUPERSEDED, operation.now)
            superseded += 1
        else:
            tables.give_lineage(item, None)
    return superseded


def _forget_conversation(tables: Tables, lineage_id: LineageId) -> None:
    of_it = [at for at, entry in tables.state.items() if (at[0], entry.lineage_id) == (CONVERSATION, lineage_id)]
    for place in of_it:
        del tables.state[place]


def _is_quiet(tables: Tables, route: Route, lineage_id: LineageId, since: int | None) -> bool:
    """Return whether nobody has used a route since; always where nobody asks."""
    if since is None:
        return True
    used = max(tables.lineages[lineage_id].last_activity, route.updated_at)
    active = any(turn.lineage_id == lineage_id and turn.outcome == ACTIVE for turn in tables.turns.values())
    return used <= since and not (active or tables.pending(lineage_id=lineage_id) or tables.pending(key=route.key))


def _runs(tables: Tables, lineage_id: LineageId, key: SessionKey) -> bool:
    """Return whether a turn that ``key`` began is active in a lineage."""
    return any(
        turn.lineage_id == lineage_id and turn.outcome == ACTIVE and turn.session_key == key
        for turn in tables.turns.values()
    )


def forget_route(tables: Tables, operation: ForgetRoute) -> bool:
    """Run :class:`~hermes_hookspecs.operations.ForgetRoute`."""
    return tables.routes.pop(operation.key, None) is not None
