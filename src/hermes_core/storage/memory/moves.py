"""Routes that get other keys, the journal of it, and whose their lineages are then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.titles import free_title
from hermes_hookspecs.approvals import OPEN
from hermes_hookspecs.inbox import APPLIED, PENDING
from hermes_hookspecs.jobs import RUNNING
from hermes_hookspecs.operations import Moved
from hermes_hookspecs.sessions import RouteMove
from hermes_hookspecs.sessions.moves import CLAIMED, REFUSED, claimed_for, refused_to
from hermes_hookspecs.turns import ACTIVE

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.operations import Claim, GetOrCreate, MoveRoutes, Rekey
    from hermes_hookspecs.principal import Owner
    from hermes_hookspecs.source import SessionSource

__all__ = ["move_routes", "note_claim", "note_refusals"]


def _note(
    tables: Tables,
    kind: str,
    key: SessionKey,
    operation: GetOrCreate | MoveRoutes,
    *,
    new_key: SessionKey,
    reason: str,
    batch: str | None = None,
) -> RouteMove | None:
    """Write a line about a live route and its lineage as they are, before anything of them changes."""
    route = tables.routes.get(key)
    if route is None or route.lineage_id is None:
        return None
    lineage = tables.lineages[route.lineage_id]
    tables.last_move += 1
    move = RouteMove(
        id=tables.last_move,
        kind=kind,
        key=key,
        new_key=new_key,
        lineage_id=lineage.id,
        at=operation.now,
        batch=batch,
        reason=reason,
        key_version=route.key_version,
        policy=route.policy,
        owner=lineage.owner,
        shared=lineage.shared,
    )
    tables.moves.append(move)
    return move


def note_claim(tables: Tables, operation: GetOrCreate, claim: Claim, lineage_id: LineageId) -> None:
    """Write a claim down, before its route moves, and let the lineage have the scope that was not recorded."""
    reason = claimed_for(claim.scope_id, operation.source.scope_id)
    _note(tables, CLAIMED, claim.key, operation, new_key=operation.key, reason=reason)
    if claim.scope_id is None and operation.source.scope_id is not None:
        _fill_scope(tables, lineage_id, operation.source, operation.now)


def note_refusals(tables: Tables, operation: GetOrCreate) -> None:
    """Write down which live routes were asked for and did not fit."""
    for key in dict.fromkeys(claim.key for claim in operation.claims):
        old = tables.routes.get(key)
        if old is not None:
            asking = [claim for claim in operation.claims if claim.key == key]
            reason = refused_to(old.source, operation.source, asking)
            _note(tables, REFUSED, key, operation, new_key=operation.key, reason=reason)


def _fill_scope(tables: Tables, lineage_id: LineageId, source: SessionSource, now: int) -> None:
    """Give owner, room and source of a lineage the scope of ``source``, where they have none of that platform."""
    lineage = tables.lineages[lineage_id]
    old = lineage.source
    if old.platform == source.platform and old.scope_id is None:
        old = attrs.evolve(old, scope_id=source.scope_id)
    room = None if lineage.room is None else _scoped(lineage.room, source)
    tables.lineages[lineage_id] = attrs.evolve(lineage, source=old, room=room)
    _give(tables, lineage_id, _scoped(lineage.owner, source))
    tables.note_lineage(lineage_id, now)


def _scoped(owner: Owner, source: SessionSource) -> Owner:
    if owner.platform != source.platform or owner.scope_id:
        return owner
    return attrs.evolve(owner, scope_id=source.scope_id or "")


def _give(tables: Tables, lineage_id: LineageId, owner: Owner) -> None:
    """Let a lineage belong to ``owner``; a title that is taken there gets a number."""
    lineage = tables.lineages[lineage_id]
    if owner == lineage.owner:
        return
    title = None if lineage.title is None else free_title(tables, owner, lineage.title)
    tables.lineages[lineage_id] = attrs.evolve(lineage, owner=owner, title=title)
    tip = tables.sessions[lineage.tip]
    tables.sessions[tip.id] = attrs.evolve(tip, title=tip.title if title == lineage.title else title)


def move_routes(tables: Tables, operation: MoveRoutes) -> Moved:
    """Run :class:`~hermes_hookspecs.operations.MoveRoutes`."""
    known = {move.key: move for move in tables.moves if (move.batch, move.kind) == (operation.batch, operation.kind)}
    moves: list[RouteMove] = []
    left: list[SessionKey] = []
    for move in operation.moves:
        done = known.get(move.key) or _move(tables, operation, move)
        if done is None:
            left.append(move.key)
        else:
            known[move.key] = done
            moves.append(done)
    return Moved(moves=tuple(moves), left=tuple(left))


def _move(tables: Tables, operation: MoveRoutes, move: Rekey) -> RouteMove | None:
    old, new = tables.routes.get(move.key), tables.routes.get(move.new_key)
    if old is None or old.lineage_id != move.expected or (new is not None and new.lineage_id is not None):
        return None
    noted = _note(
        tables, operation.kind, move.key, operation, new_key=move.new_key, reason=move.reason, batch=operation.batch
    )
    del tables.routes[move.key]
    tables.routes[move.new_key] = attrs.evolve(old, key=move.new_key, key_version=move.key_version, policy=move.policy)
    _carry(tables, move)
    lineage = tables.lineages[move.expected]
    if move.shared is not None:
        tables.lineages[lineage.id] = attrs.evolve(lineage, shared=move.shared)
    if move.owner is not None and move.owner != lineage.owner:
        _give(tables, lineage.id, move.owner)
        tables.note_lineage(lineage.id, operation.now)
    return noted


def _carry(tables: Tables, move: Rekey) -> None:
    """Let what waits and what runs name the new key."""
    key, new, lineage_id = move.key, move.new_key, move.expected
    for item in list(tables.inbox.values()):
        is_open = item.status == PENDING or (item.status == APPLIED and item.waiter is None)
        if item.session_key == key and is_open:
            tables.inbox[item.id] = attrs.evolve(item, session_key=new)
    for turn in list(tables.turns.values()):
        if turn.session_key == key and turn.lineage_id == lineage_id and turn.outcome == ACTIVE:
            tables.turns[turn.id] = attrs.evolve(turn, session_key=new)
    for asked in list(tables.approvals.values()):
        if asked.session_key == key and asked.lineage_id == lineage_id and asked.status == OPEN:
            tables.approvals[asked.id] = attrs.evolve(asked, session_key=new)
    for job in list(tables.jobs.values()):
        if job.session_key == key and job.lineage_id == lineage_id and job.status == RUNNING:
            tables.jobs[job.id] = attrs.evolve(job, session_key=new)
