"""Routes that get other keys, the journal of it, and whose their lineages are then."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

import attrs

from hermes_core.storage.sqlite.handlers.tips import note_lineage
from hermes_core.storage.sqlite.handlers.titles import SET_TIP_TITLE, free_title
from hermes_core.storage.sqlite.queries.moves import moves_by_id
from hermes_core.storage.sqlite.queries.routes import route
from hermes_core.storage.sqlite.rows import read_owner, read_source, source_text
from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.operations import Moved
from hermes_hookspecs.sessions.moves import CLAIMED, REFUSED, claimed_for, refused_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.operations import Claim, GetOrCreate, MoveRoutes, Rekey
    from hermes_hookspecs.source import SessionSource

    BelongsRow = tuple[int, str, str | None, str, str | None, str]

__all__ = ["move_routes", "note_claim", "note_refusals"]


class _Belongs(NamedTuple):
    """Whose a lineage is: the cells of :data:`BELONGS`."""

    no: int
    owner: str
    room: str | None
    source: str
    title: str | None
    tip: str


# Of the route and its lineage as they are: noted before anything of them changes.
NOTE = """
    INSERT INTO route_moves (kind, batch, key, new_key, lineage_id, at, reason, key_version, group_sessions_per_user,
        thread_sessions_per_user, owner, shared)
    SELECT ?, ?, r.key, ?, l.id, ?, ?, r.key_version, r.group_sessions_per_user, r.thread_sessions_per_user, l.owner,
        l.shared
    FROM routes AS r JOIN lineages AS l ON l.id = r.lineage_id WHERE r.key = ?
"""
KNOWN = "SELECT id FROM route_moves WHERE batch = ? AND kind = ? AND key = ?"
BELONGS = "SELECT no, owner, room, source, title, tip FROM lineages WHERE id = ?"
GIVE = "UPDATE lineages SET owner = ?, room = ?, source = ?, title = ? WHERE no = ?"
SHARE = "UPDATE lineages SET shared = ? WHERE id = ?"
REMOVE = "DELETE FROM routes WHERE key = ?"
MOVE = """
    UPDATE routes SET key = ?, key_version = ?, group_sessions_per_user = ?, thread_sessions_per_user = ? WHERE key = ?
"""
# What waits, and what runs. What has ended, and what is on its way out, keeps the key it was known by.
CARRY = (
    "UPDATE inbox SET session_key = ?1 WHERE session_key = ?2 AND status = 'pending'",
    """
    UPDATE inbox SET session_key = ?1 WHERE session_key = ?2 AND kind = 'control'
        AND status IN ('pending', 'applied') AND waiter IS NULL
    """,
    """
    UPDATE turns SET session_key = ?1 WHERE session_key = ?2 AND no = (SELECT turn_no FROM lineages WHERE id = ?3)
    """,
    "UPDATE approvals SET session_key = ?1 WHERE lineage_id = ?3 AND session_key = ?2 AND status = 'open'",
    "UPDATE jobs SET session_key = ?1 WHERE lineage_id = ?3 AND session_key = ?2 AND status = 'running'",
)


def note_claim(tx: Transaction, operation: GetOrCreate, claim: Claim, lineage_id: LineageId) -> None:
    """Write a claim down, before its route moves, and let the lineage have the scope that was not recorded."""
    reason = claimed_for(claim.scope_id, operation.source.scope_id)
    tx.run(NOTE, (CLAIMED, None, operation.key, operation.now, reason, claim.key))
    if claim.scope_id is None and operation.source.scope_id is not None:
        _fill_scope(tx, lineage_id, operation.source, operation.now)


def note_refusals(tx: Transaction, operation: GetOrCreate) -> None:
    """Write down which live routes were asked for and did not fit."""
    for key in dict.fromkeys(claim.key for claim in operation.claims):
        old = route(tx, key)
        if old is not None and old.lineage_id is not None:
            asking = [claim for claim in operation.claims if claim.key == key]
            reason = refused_to(old.source, operation.source, asking)
            tx.run(NOTE, (REFUSED, None, operation.key, operation.now, reason, key))


def _belongs(tx: Transaction, lineage_id: LineageId) -> _Belongs:
    found = tx.one(BELONGS, (lineage_id,))
    if found is None:
        raise SessionNotFound(lineage_id)
    return _Belongs(*cast("BelongsRow", found))  # columns of BELONGS


def _fill_scope(tx: Transaction, lineage_id: LineageId, source: SessionSource, now: int) -> None:
    """Give owner, room and source of a lineage the scope of ``source``, where they have none of that platform."""
    old = _belongs(tx, lineage_id)
    said = read_source(old.source)
    if said.platform == source.platform and said.scope_id is None:
        said = attrs.evolve(said, scope_id=source.scope_id)
    room = None if old.room is None else _scoped(old.room, source)
    new = old._replace(owner=_scoped(old.owner, source), room=room, source=source_text(said))
    _give(tx, old, new, now)


def _scoped(cell: str, source: SessionSource) -> str:
    owner = read_owner(cell)
    if owner.platform != source.platform or owner.scope_id:
        return cell
    return str(attrs.evolve(owner, scope_id=source.scope_id or ""))


def _give(tx: Transaction, old: _Belongs, new: _Belongs, now: int) -> None:
    """Write whose a lineage is; a title that is taken there gets a number."""
    title = old.title
    if title is not None and new.owner != old.owner:
        title = free_title(tx, new.owner, title)
    tx.run(GIVE, (new.owner, new.room, new.source, title, old.no))
    if title != old.title:
        tx.run(SET_TIP_TITLE, (title, old.tip))
    note_lineage(tx, old.no, now)


def move_routes(operation: MoveRoutes) -> Callable[[Transaction], Moved]:
    """Work of :class:`~hermes_hookspecs.operations.MoveRoutes`."""

    def work(tx: Transaction) -> Moved:
        noted: list[int] = []
        left: list[SessionKey] = []
        for move in operation.moves:
            known = tx.one(KNOWN, (operation.batch, operation.kind, move.key))
            if known is not None:
                noted.append(cast("tuple[int]", known)[0])  # the column of KNOWN
            elif _fits(tx, move):
                noted.append(_move(tx, operation, move))
            else:
                left.append(move.key)
        return Moved(moves=moves_by_id(tx, noted), left=tuple(left))

    return work


def _fits(tx: Transaction, move: Rekey) -> bool:
    old, new = route(tx, move.key), route(tx, move.new_key)
    return old is not None and old.lineage_id == move.expected and (new is None or new.lineage_id is None)


def _move(tx: Transaction, operation: MoveRoutes, move: Rekey) -> int:
    note = (operation.kind, operation.batch, move.new_key, operation.now, move.reason, move.key)
    move_id = tx.insert(NOTE, note)
    tx.run(REMOVE, (move.new_key,))
    policy = (move.policy.group_sessions_per_user, move.policy.thread_sessions_per_user)
    tx.run(MOVE, (move.new_key, move.key_version, *policy, move.key))
    for statement in CARRY:
        tx.run(statement, (move.new_key, move.key, move.expected)[: 3 if "?3" in statement else 2])
    _let_have(tx, move, operation.now)
    return move_id


def _let_have(tx: Transaction, move: Rekey, now: int) -> None:
    """Say whose the lineage of a moved route is."""
    if move.shared is not None:
        tx.run(SHARE, (move.shared, move.expected))
    if move.owner is None:
        return
    old = _belongs(tx, move.expected)
    if old.owner != str(move.owner):
        _give(tx, old, old._replace(owner=str(move.owner)), now)
