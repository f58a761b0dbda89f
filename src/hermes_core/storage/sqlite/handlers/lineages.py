"""Flags of a lineage, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.tips import note_lineage
from hermes_core.storage.sqlite.handlers.turn_ends import revoke_lease
from hermes_core.storage.sqlite.queries.lineages import lineage_of
from hermes_hookspecs.errors import LeaseBusy, SessionNotFound
from hermes_hookspecs.operations import Deleted
from hermes_hookspecs.turns import STOPPED, LeaseStamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.operations import Delete, SetFlags
    from hermes_hookspecs.sessions import Lineage

    StandRow = tuple[int, str, int, int, str | None]

__all__ = ["delete", "set_flags"]

SET_FLAGS = """
    UPDATE lineages SET pinned = coalesce(?1, pinned), archived = coalesce(?2, archived), version = version + 1
    WHERE id = ?3 AND (pinned <> coalesce(?1, pinned) OR archived <> coalesce(?2, archived))
    RETURNING no
"""
STAND = "SELECT no, tip, lease_token, lease_renewals, lease_label FROM lineages WHERE id = ?"
# What waits is not part of the lineage; of the rest stays what tells a redelivery.
LET_GO = "UPDATE inbox SET lineage_id = NULL WHERE lineage_id = ? AND status IN ('pending', 'applied')"
EMPTY = """
    UPDATE inbox SET lineage_id = NULL, text = '', attachments = NULL, outcome = NULL,
        status = iif(status = 'claimed', 'done', status), settled_at = coalesce(settled_at, ?)
    WHERE lineage_id = ?
"""
RELEASE_ROUTES = "UPDATE routes SET lineage_id = NULL WHERE lineage_id = ?"
# What refers to a row goes before it.
REMOVE = (
    "DELETE FROM usage WHERE turn_id IN (SELECT id FROM turns WHERE lineage_id = ?)",
    "DELETE FROM turns WHERE lineage_id = ?",
    "DELETE FROM outbox_parts WHERE delivery_id IN (SELECT id FROM outbox WHERE lineage_id = ?)",
    "DELETE FROM outbox WHERE lineage_id = ?",
    "DELETE FROM plugin_state WHERE lineage_id = ?",
    "DELETE FROM approvals WHERE lineage_id = ?",
    "DELETE FROM jobs WHERE lineage_id = ?",
    "DELETE FROM route_moves WHERE lineage_id = ?",
    # Who called what stays until its time is over, what was said goes.
    "UPDATE audit SET arguments = '', result = '' WHERE lineage_id = ?",
)
REMOVE_MESSAGES = "DELETE FROM messages WHERE lineage_no = ?"
REMOVE_SESSIONS = "DELETE FROM sessions WHERE lineage_id = ?"
REMOVE_LINEAGE = "DELETE FROM lineages WHERE no = ?"
REMEMBER_NAMES = "INSERT INTO erased VALUES (?, ?, ?)"


def set_flags(operation: SetFlags) -> Callable[[Transaction], Lineage]:
    """Work of :class:`~hermes_hookspecs.operations.SetFlags`."""

    def work(tx: Transaction) -> Lineage:
        changed = tx.one(SET_FLAGS, (operation.pinned, operation.archived, operation.lineage_id))
        if changed is not None:
            note_lineage(tx, cast("tuple[int]", changed)[0], operation.now)  # what SET_FLAGS returns
        lineage = lineage_of(tx, operation.lineage_id)
        if lineage is None:
            raise SessionNotFound(operation.lineage_id)
        return lineage

    return work


def delete(operation: Delete) -> Callable[[Transaction], Deleted]:
    """Work of :class:`~hermes_hookspecs.operations.Delete`."""
    lineage_id = operation.lineage_id

    def work(tx: Transaction) -> Deleted:
        found = tx.one(STAND, (lineage_id,))
        if found is None:
            raise SessionNotFound(lineage_id)
        lineage_no, tip, token, renewals, holder = cast("StandRow", found)  # columns of STAND
        if holder is not None and operation.force:
            revoke_lease(tx, lineage_no, STOPPED, "deleted", operation.now)
        elif holder is not None and LeaseStamp(token, renewals) != operation.presumed_dead:
            raise LeaseBusy(
                f"a turn of {holder} is running in {lineage_id}; wait for it, or use --force", holder=holder
            )
        _forget(tx, lineage_id, operation.now)
        messages = tx.run(REMOVE_MESSAGES, (lineage_no,))
        sessions = tx.run(REMOVE_SESSIONS, (lineage_id,))
        tx.run(REMOVE_LINEAGE, (lineage_no,))
        tx.run(REMEMBER_NAMES, (lineage_no, lineage_id, tip))
        note_lineage(tx, lineage_no, operation.now, "delete-lineage")
        return Deleted(lineage_id=lineage_id, sessions=sessions, messages=messages)

    return work


def _forget(tx: Transaction, lineage_id: LineageId, now: int) -> None:
    """Remove what hangs on a lineage outside its own rows; routes stay and lead nowhere."""
    tx.run(LET_GO, (lineage_id,))
    tx.run(EMPTY, (now, lineage_id))
    for statement in (*REMOVE, RELEASE_ROUTES):
        tx.run(statement, (lineage_id,))
