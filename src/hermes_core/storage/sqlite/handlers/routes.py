"""Routes that are bound and released, and the policy that makes keys."""

# ruff: noqa: S608 - statements are put together from constants of this package, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import attrs

from hermes_core.storage.sqlite.handlers.entries import lead
from hermes_core.storage.sqlite.handlers.plugin_state import put
from hermes_core.storage.sqlite.handlers.tips import bump, end_tip, reopen_tip, said_at
from hermes_core.storage.sqlite.handlers.turn_ends import revoke_lease
from hermes_core.storage.sqlite.queries.lineages import lineage_of
from hermes_core.storage.sqlite.queries.routes import entry_of_lineage, route
from hermes_hookspecs.errors import Conflict, SessionNotFound
from hermes_hookspecs.operations import Released
from hermes_hookspecs.state import CONVERSATION
from hermes_hookspecs.turns import STOPPED

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey
    from hermes_hookspecs.operations import BindRoute, ForgetRoute, ReleaseRoute
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.turns import Turn

__all__ = ["bind_route", "forget_route", "release_route"]

PENDING = "session_key = ? AND status = 'pending' AND kind <> 'control'"
SUPERSEDE_LEFT = f"""
    UPDATE inbox SET status = 'superseded', settled_at = ? WHERE {PENDING} AND (lineage_id IS ? OR lineage_id IS NULL)
    AND id < ?
"""
CARRY = f"UPDATE inbox SET lineage_id = ? WHERE {PENDING} AND (lineage_id IS ? OR lineage_id IS NULL)"
SUPERSEDE = f"UPDATE inbox SET status = 'superseded', settled_at = ? WHERE {PENDING} AND id < ?"
LET_WAIT = f"UPDATE inbox SET lineage_id = NULL WHERE {PENDING}"
RELEASE = "UPDATE routes SET lineage_id = NULL, updated_at = ?, pending_title = ? WHERE key = ?"
KEEP_TITLE = "UPDATE routes SET pending_title = ? WHERE key = ?"
FORGET = "DELETE FROM routes WHERE key = ?"
RUNNING = """
    SELECT l.no FROM lineages AS l JOIN turns AS t ON t.no = l.turn_no WHERE l.id = ? AND t.session_key = ?
"""
QUIET = f"""
    SELECT 1 FROM lineages AS l JOIN routes AS r ON r.lineage_id = l.id WHERE r.key = ?1
    AND max(l.last_activity, r.updated_at) <= ?2 AND l.turn_no IS NULL
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE lineage_id = l.id AND status = 'pending' AND kind <> 'control')
    AND NOT EXISTS (SELECT 1 FROM inbox WHERE {PENDING.replace("?", "?1")})
"""
FORGET_CONVERSATION = """
    DELETE FROM plugin_state WHERE lineage_id = ?1 AND namespace = ?2
    AND NOT EXISTS (SELECT 1 FROM routes WHERE lineage_id = ?1)
"""
ALL = 1 << 62
"""Greater than every id: without a control row, all rows are older."""


def _check(operation: BindRoute | ReleaseRoute, current: LineageId | None) -> None:
    if operation.check and current != operation.expected:
        raise Conflict(f"{operation.key} leads to {current} by now, not to {operation.expected}; look again")


def _leads_to(tx: Transaction, key: SessionKey) -> LineageId | None:
    found = route(tx, key)
    return None if found is None else found.lineage_id


def _before(control_id: InboxId | None) -> int:
    return ALL if control_id is None else control_id


def bind_route(operation: BindRoute) -> Callable[[Transaction], SessionEntry]:
    """Work of :class:`~hermes_hookspecs.operations.BindRoute`."""
    key, target, now = operation.key, operation.lineage_id, operation.now

    def work(tx: Transaction) -> SessionEntry:
        if entry_of_lineage(tx, key, target) is None:
            raise SessionNotFound(target)
        left = _leads_to(tx, key)
        _check(operation, left)
        superseded = 0
        if left != target:
            lead(tx, operation, target)
            if not operation.carry:
                superseded = tx.run(SUPERSEDE_LEFT, (now, key, left, _before(operation.control_id)))
            tx.run(CARRY, (target, key, left))
            if left is not None:
                end_tip(tx, left, "session_switch", now)
        said_at(tx, target, operation.source, now)
        if reopen_tip(tx, target):
            bump(tx, target)
        entry = entry_of_lineage(tx, key, target)
        if entry is None:
            raise SessionNotFound(target)
        return attrs.evolve(entry, superseded=superseded)

    return work


def release_route(operation: ReleaseRoute) -> Callable[[Transaction], Released]:
    """Work of :class:`~hermes_hookspecs.operations.ReleaseRoute`."""
    key, now = operation.key, operation.now

    def work(tx: Transaction) -> Released:
        left = _leads_to(tx, key)
        _check(operation, left)
        quiet_since = operation.quiet_since
        if left is not None and quiet_since is not None and tx.one(QUIET, (key, quiet_since)) is None:
            raise Conflict(f"{key} is not quiet any more; look again")
        stopped: Turn | None = None
        if left is not None:
            tx.run(RELEASE, (now, operation.title, key))
            running = tx.one(RUNNING, (left, key))
            if running is not None:
                (lineage_no,) = cast("tuple[int]", running)  # the column of RUNNING
                stopped = revoke_lease(tx, lineage_no, STOPPED, operation.reason, now)
        elif operation.title is not None:
            tx.run(KEEP_TITLE, (operation.title, key))
        for update in operation.state:
            put(tx, update, now)
        superseded = tx.run(SUPERSEDE, (now, key, _before(operation.control_id)))
        tx.run(LET_WAIT, (key,))
        if left is None:
            return Released(lineage=None, stopped=None, superseded=superseded)
        end_tip(tx, left, operation.reason, now)
        tx.run(FORGET_CONVERSATION, (left, CONVERSATION))
        return Released(lineage=lineage_of(tx, left), stopped=stopped, superseded=superseded)

    return work


def forget_route(operation: ForgetRoute) -> Callable[[Transaction], bool]:
    """Work of :class:`~hermes_hookspecs.operations.ForgetRoute`."""

    def work(tx: Transaction) -> bool:
        return tx.run(FORGET, (operation.key,)) > 0

    return work
