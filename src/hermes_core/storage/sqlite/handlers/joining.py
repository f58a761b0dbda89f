"""Deliveries that go out with an older one of their address: settled in the step that makes them parts of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.storage.sqlite.handlers.sending import ADD_PART, in_hand
from hermes_core.storage.sqlite.queries.outbox import delivery

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.operations import JoinDeliveries
    from hermes_hookspecs.outbox import Delivery

__all__ = ["join_deliveries"]

BEHIND = """
    SELECT id, status = 'waiting' AND attempt = 0 AND files IS NULL, lineage_id FROM outbox
    WHERE settled_at IS NULL AND address = (SELECT address FROM outbox WHERE id = ?1) AND id > ?1 ORDER BY id LIMIT ?2
"""
JOIN = "UPDATE outbox SET status = 'joined', settled_at = ?, error = ? WHERE id = ?"
REMOVE_UNSENT = "DELETE FROM outbox_parts WHERE delivery_id = ? AND sent_at IS NULL"
SAY = "UPDATE outbox SET text = ? WHERE id = ?"


def join_deliveries(operation: JoinDeliveries) -> Callable[[Transaction], Delivery | None]:
    """Work of :class:`~hermes_hookspecs.operations.JoinDeliveries`."""
    delivery_id, joined = operation.delivery_id, operation.joined

    def work(tx: Transaction) -> Delivery | None:
        found = in_hand(tx, delivery_id, operation.attempt)
        rows = tx.all(BEHIND, (delivery_id, len(joined)))
        are_those = bool(joined) and rows == [(each, 1, found.lineage_id) for each in joined]
        if not are_those or not operation.parts or found.uncertain or found.files:
            return None
        why = f"it goes out with delivery {delivery_id}"
        tx.run_many(JOIN, [(operation.now, why, each) for each in joined])
        tx.run(REMOVE_UNSENT, (delivery_id,))
        first = sum(part.sent_at is not None for part in found.parts)
        parts = [
            (delivery_id, index, f"{found.key}-{index}-{found.attempt}", part.format, part.text, None)
            for index, part in enumerate(operation.parts, first)
        ]
        tx.run_many(ADD_PART, parts)
        tx.run(SAY, (operation.text, delivery_id))
        return delivery(tx, delivery_id)

    return work
