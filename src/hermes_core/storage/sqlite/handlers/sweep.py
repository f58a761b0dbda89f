"""What has ended and is old goes, a bounded number of rows at a time."""

from __future__ import annotations

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
REMOVE_STATE = "DELETE FROM plugin_state WHERE namespace = ? AND key = ?"


def sweep(operation: Sweep) -> Callable[[Transaction], Swept]:
    """Work of :class:`~hermes_hookspecs.operations.Sweep`."""
    limit = max(operation.limit, 0)

    def work(tx: Transaction) -> Swept:
        inbox = _sweep_inbox(tx, operation.inbox_before, limit)
        outbox = _sweep_outbox(tx, operation.outbox_before, limit)
        expired = tx.all(EXPIRED, (operation.now, limit))
        tx.run_many(REMOVE_STATE, expired)
        counts = (inbox, outbox, len(expired))
        return Swept(inbox=inbox, outbox=outbox, state=len(expired), more=max(counts) >= limit)

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
