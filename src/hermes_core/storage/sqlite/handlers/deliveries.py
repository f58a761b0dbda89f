"""Deliveries on their way into the outbox, and what people decide about them there."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.queries.outbox import delivery
from hermes_core.storage.sqlite.rows import attachments_text, source_text
from hermes_hookspecs.errors import Conflict, DeliveryNotFound
from hermes_hookspecs.outbox import DROPPED, JOINED, SENDING, SENT, address_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hermes_core.storage.sqlite.transaction import SQLiteValue, Transaction
    from hermes_hookspecs.ids import DeliveryId
    from hermes_hookspecs.operations import Deliver, DropDelivery, RetryDelivery
    from hermes_hookspecs.outbox import Delivery, DeliveryDraft

    Row = tuple[SQLiteValue, ...]

__all__ = ["cells_of", "deliver", "drop_delivery", "retry_delivery", "store_deliveries"]

INSERT = """
    INSERT INTO outbox (key, address, lineage_id, turn_id, inbox_id, session_key, kind, status, created_at, due_at,
        target, text, files)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 'waiting', ?11, ?11, ?8, ?9, ?10)
    ON CONFLICT (key) DO NOTHING RETURNING id
"""
KNOWN = "SELECT id FROM outbox WHERE key = ?"
SETTLE = """
    UPDATE inbox SET status = 'done', settled_at = ?
    WHERE id = ? AND kind = 'control' AND status IN ('pending', 'applied')
"""
RETRY = """
    UPDATE outbox SET status = 'waiting', due_at = ?, failures = 0, awaits_inbound = 0, settled_at = NULL, uncertain = ?
    WHERE id = ?
"""
DROP = "UPDATE outbox SET status = 'dropped', settled_at = ?, uncertain = ? WHERE id = ?"


def cells_of(drafts: Iterable[DeliveryDraft]) -> list[Row]:
    """Rows ready for :func:`store_deliveries`, made outside the transaction."""
    return [
        (
            draft.key,
            address_of(draft.target),
            draft.lineage_id,
            draft.turn_id,
            draft.inbox_id,
            draft.session_key,
            draft.kind,
            source_text(draft.target),
            draft.text,
            attachments_text(draft.files),
        )
        for draft in drafts
    ]


def store_deliveries(tx: Transaction, rows: Iterable[Row], now: int) -> tuple[DeliveryId, ...]:
    """Store deliveries whose key is new; return the row of each key, in order."""
    ids: list[DeliveryId] = []
    for row in rows:
        found = tx.one(INSERT, (*row, now)) or tx.one(KNOWN, (row[0],))
        ids.append(cast("tuple[DeliveryId]", found)[0])  # the column of both, and one of them has a row
    return tuple(ids)


def deliver(operation: Deliver) -> Callable[[Transaction], tuple[DeliveryId, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.Deliver`."""
    rows, now = cells_of(operation.drafts), operation.now

    def work(tx: Transaction) -> tuple[DeliveryId, ...]:
        ids = store_deliveries(tx, rows, now)
        if operation.settle is not None:
            tx.run(SETTLE, (now, operation.settle))
        return ids

    return work


def retry_delivery(operation: RetryDelivery) -> Callable[[Transaction], Delivery]:
    """Work of :class:`~hermes_hookspecs.operations.RetryDelivery`."""
    delivery_id = operation.delivery_id

    def work(tx: Transaction) -> Delivery:
        found = _there(tx, delivery_id)
        if found.status in {SENT, JOINED} or _is_in_hand(found, operation.presumed_dead):
            raise Conflict(
                f"delivery {delivery_id} is {found.status}; only what failed, was dropped or waits is retried"
            )
        tx.run(RETRY, (operation.now, _is_uncertain(found), delivery_id))
        return _there(tx, delivery_id)

    return work


def drop_delivery(operation: DropDelivery) -> Callable[[Transaction], Delivery]:
    """Work of :class:`~hermes_hookspecs.operations.DropDelivery`."""
    delivery_id = operation.delivery_id

    def work(tx: Transaction) -> Delivery:
        found = _there(tx, delivery_id)
        if found.status in {SENT, JOINED} or _is_in_hand(found, operation.presumed_dead):
            raise Conflict(f"delivery {delivery_id} is {found.status}; it cannot be dropped any more")
        if found.status != DROPPED:
            tx.run(DROP, (operation.now, _is_uncertain(found), delivery_id))
        return _there(tx, delivery_id)

    return work


def _is_in_hand(found: Delivery, presumed_dead: int | None) -> bool:
    """Return whether an attempt sends it that is not the one known to be dead."""
    return found.status == SENDING and found.attempt != presumed_dead


def _is_uncertain(found: Delivery) -> bool:
    """Return whether its first unsent part may have gone out, in an attempt before or in the one that ends here."""
    return found.uncertain or (found.status == SENDING and bool(found.parts))


def _there(tx: Transaction, delivery_id: DeliveryId) -> Delivery:
    found = delivery(tx, delivery_id)
    if found is None:
        raise DeliveryNotFound(delivery_id)
    return found
