"""What has ended and is old goes, a bounded number of rows at a time."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_strings
from hermes_hookspecs.operations import Swept

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import Sweep

__all__ = ["sweep"]

# Only rows that ended have a time of that; what waits, is claimed or is applied has none. A row whose answer may be on
# its way stays, so that a redelivery finds it: deliveries name the oldest row that they answer.
OLD_INBOX = """
    SELECT id, identities FROM inbox WHERE settled_at IS NOT NULL AND settled_at < ? AND NOT EXISTS (
        SELECT 1 FROM outbox WHERE outbox.session_key = inbox.session_key AND inbox_id <= inbox.id
            AND outbox.settled_at IS NULL
    ) ORDER BY settled_at, id LIMIT ?
"""
FORGET_IDENTITY = "DELETE FROM inbox_identities WHERE identity = ?"
REMOVE_INBOX = "DELETE FROM inbox WHERE id = ?"
OLD_OUTBOX = "SELECT id FROM outbox WHERE settled_at IS NOT NULL AND settled_at < ? ORDER BY settled_at, id LIMIT ?"
REMOVE_PARTS = "DELETE FROM outbox_parts WHERE delivery_id = ?"
REMOVE_OUTBOX = "DELETE FROM outbox WHERE id = ?"
EXPIRED = """
    SELECT namespace, key FROM plugin_state WHERE expires_at IS NOT NULL AND expires_at <= ? ORDER BY expires_at LIMIT ?
"""
# Whoever may still answer, or has to hear of it, finds it.
OLD_RECORDS = (
    """
    DELETE FROM audit WHERE id IN (
        SELECT id FROM audit WHERE started_at < ?1 AND NOT EXISTS (
            SELECT 1 FROM turns WHERE turns.id = audit.turn_id AND turns.outcome = 'active'
        ) ORDER BY started_at, id LIMIT ?2
    )
    """,
    """
    DELETE FROM approvals WHERE no IN (
        SELECT no FROM approvals WHERE asked_at < ?1 AND NOT EXISTS (
            SELECT 1 FROM turns WHERE turns.id = approvals.turn_id AND turns.outcome = 'active'
        ) ORDER BY asked_at, no LIMIT ?2
    )
    """,
    """
    DELETE FROM jobs WHERE no IN (
        SELECT no FROM jobs WHERE settled_at IS NOT NULL AND settled_at < ?1 ORDER BY settled_at, no LIMIT ?2
    )
    """,
)
REMOVE_STATE = "DELETE FROM plugin_state WHERE namespace = ? AND key = ?"
NO_LIMIT = (1 << 63) - 1
# A plugin's tables wait for every change behind their watermark.
WAITING = "SELECT min(watermark) FROM plugin_schema"
PLUGINS = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'plugin_schema'"
OLD_CHANGES = "SELECT id, kind, lineage_no, at FROM changes WHERE id <= ? ORDER BY id LIMIT ?"
OLD_MOVES = "SELECT id, at FROM route_moves WHERE id > 0 ORDER BY id LIMIT ?"
REMOVE_MOVES = "DELETE FROM route_moves WHERE id <= ?"
REMOVE_CHANGES = "DELETE FROM changes WHERE id <= ?"
# A deletion is the last change of a lineage: with it nothing is left that its name is needed for.
FORGET_NAME = "DELETE FROM erased WHERE lineage_no = ?"


def sweep(operation: Sweep) -> Callable[[Transaction], Swept]:
    """Work of :class:`~hermes_hookspecs.operations.Sweep`."""
    limit = max(operation.limit, 0)

    def work(tx: Transaction) -> Swept:
        inbox = _sweep_inbox(tx, operation.inbox_before, limit)
        outbox = _sweep_outbox(tx, operation.outbox_before, limit)
        expired = tx.all(EXPIRED, (operation.now, limit))
        tx.run_many(REMOVE_STATE, expired)
        records = [tx.run(statement, (operation.records_before, limit)) for statement in OLD_RECORDS]
        changes = _sweep_changes(tx, operation.changes_before, limit)
        moves = _sweep_moves(tx, operation.moves_before, limit)
        return Swept(
            inbox=inbox,
            outbox=outbox,
            state=len(expired),
            records=sum(records),
            changes=changes,
            moves=moves,
            more=max(inbox, outbox, len(expired), changes, moves, *records) >= limit,
        )

    return work


def _sweep_inbox(tx: Transaction, before: int, limit: int) -> int:
    rows = cast("list[tuple[int, str | None]]", tx.all(OLD_INBOX, (before, limit)))  # columns of OLD_INBOX
    identities = [identity for _, text in rows for identity in read_strings(text)]
    tx.run_many(FORGET_IDENTITY, [(identity,) for identity in identities])
    tx.run_many(REMOVE_INBOX, [(inbox_id,) for inbox_id, _ in rows])
    return len(rows)


def _sweep_outbox(tx: Transaction, before: int, limit: int) -> int:
    rows = tx.all(OLD_OUTBOX, (before, limit))
    tx.run_many(REMOVE_PARTS, rows)
    tx.run_many(REMOVE_OUTBOX, rows)
    return len(rows)


def _sweep_changes(tx: Transaction, before: int, limit: int) -> int:
    waiting = tx.one(WAITING) if tx.one(PLUGINS) is not None else None
    top = NO_LIMIT if waiting is None or waiting[0] is None else waiting[0]
    rows = cast("list[tuple[int, str, int, int]]", tx.all(OLD_CHANGES, (top, limit)))  # columns of OLD_CHANGES
    old = list(takewhile(lambda row: row[3] < before, rows))
    if old:
        tx.run(REMOVE_CHANGES, (old[-1][0],))
        tx.run_many(FORGET_NAME, [(lineage_no,) for _, kind, lineage_no, _ in old if kind == "delete-lineage"])
    return len(old)


def _sweep_moves(tx: Transaction, before: int, limit: int) -> int:
    rows = cast("list[tuple[int, int]]", tx.all(OLD_MOVES, (limit,)))  # columns of OLD_MOVES
    old = list(takewhile(lambda row: row[1] < before, rows))
    if old:
        tx.run(REMOVE_MOVES, (old[-1][0],))
    return len(old)
