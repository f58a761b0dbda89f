"""Deliveries in hand: claimed, split, sent part by part, put back or given up.

Every write of an attempt but the claim looks at the row first and is refused where the row is another attempt's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.storage.sqlite.handlers.entries import ADOPT, lead
from hermes_core.storage.sqlite.handlers.plugin_state import put
from hermes_core.storage.sqlite.queries.outbox import delivery
from hermes_core.storage.sqlite.queries.routes import entry_of_lineage, route
from hermes_core.storage.sqlite.rows import file_text, holder_text
from hermes_hookspecs.errors import Conflict
from hermes_hookspecs.operations import BindRoute
from hermes_hookspecs.outbox import REPLY, SENDING, WAITING

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import DeliveryId, LineageId
    from hermes_hookspecs.operations import ClaimDelivery, DeferDelivery, FailDelivery, MarkSent, SplitDelivery
    from hermes_hookspecs.outbox import Delivery, OpenedThread, StoredPart

__all__ = ["ADD_PART", "claim_delivery", "defer_delivery", "fail_delivery", "in_hand", "mark_sent", "split_delivery"]

OLDER = """
    SELECT 1 FROM outbox WHERE settled_at IS NULL AND address = (SELECT address FROM outbox WHERE id = ?1) AND id < ?1
    LIMIT 1
"""
CLAIM = """
    UPDATE outbox SET status = 'sending', attempt = attempt + 1, inbound_seen = 0, owner = ?, uncertain = ?
    WHERE id = ?
"""
ADD_PART = "INSERT INTO outbox_parts (delivery_id, part, key, format, text, file) VALUES (?, ?, ?, ?, ?, ?)"
SENT_BY = "SELECT attempt FROM outbox_parts WHERE delivery_id = ? AND part = ?"
MARK_PART = """
    UPDATE outbox_parts SET sent_at = ?, attempt = ?, platform_message_id = ?, possible_repeat = ?
    WHERE delivery_id = ? AND part = ?
"""
MARK = "UPDATE outbox SET uncertain = 0 WHERE id = ?"
MARK_LAST = "UPDATE outbox SET uncertain = 0, status = 'sent', settled_at = ?, error = '' WHERE id = ?"
DEFER = """
    UPDATE outbox SET status = 'waiting', due_at = ?, awaits_inbound = ? AND NOT inbound_seen, failures = failures + ?,
        uncertain = ?, error = ?
    WHERE id = ?
"""
FAIL = "UPDATE outbox SET status = 'failed', settled_at = ?, uncertain = ?, error = ? WHERE id = ?"


def claim_delivery(operation: ClaimDelivery) -> Callable[[Transaction], Delivery | None]:
    """Work of :class:`~hermes_hookspecs.operations.ClaimDelivery`."""
    owner, delivery_id = holder_text(operation.owner), operation.delivery_id

    def work(tx: Transaction) -> Delivery | None:
        found = delivery(tx, delivery_id)
        if found is None or not _is_claimable(found, operation) or tx.one(OLDER, (delivery_id,)) is not None:
            return None
        taken_over = found.status == SENDING and bool(found.parts)
        tx.run(CLAIM, (owner, found.uncertain or taken_over, delivery_id))
        return delivery(tx, delivery_id)

    return work


def _is_claimable(found: Delivery, operation: ClaimDelivery) -> bool:
    if found.attempt != operation.expected_attempt:
        return False
    if found.status == SENDING:
        return operation.presumed_dead
    return found.status == WAITING and found.is_due(operation.now) and not found.awaits_inbound


def _of_attempt(tx: Transaction, delivery_id: DeliveryId, attempt: int) -> Delivery:
    """The row, which must be of this attempt, whatever its state.

    :raises Conflict: it is not.
    """
    found = delivery(tx, delivery_id)
    if found is None or found.attempt != attempt:
        now_at = "gone" if found is None else f"at attempt {found.attempt}"
        raise Conflict(f"delivery {delivery_id} is {now_at} by now, not at attempt {attempt}; nothing was written")
    return found


def in_hand(tx: Transaction, delivery_id: DeliveryId, attempt: int) -> Delivery:
    """The row, which this attempt must be sending.

    :raises Conflict: it is not.
    """
    found = _of_attempt(tx, delivery_id, attempt)
    if found.status != SENDING:
        raise Conflict(f"delivery {delivery_id} is {found.status}, attempt {attempt} is over; nothing was written")
    return found


def _stands(tx: Transaction, delivery_id: DeliveryId, attempt: int) -> Delivery:
    """The row as it stands behind a write of the attempt."""
    return _of_attempt(tx, delivery_id, attempt)


def split_delivery(operation: SplitDelivery) -> Callable[[Transaction], tuple[StoredPart, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.SplitDelivery`."""
    delivery_id, attempt = operation.delivery_id, operation.attempt
    cells = [(part.format, part.text, file_text(part.file)) for part in operation.parts]

    def work(tx: Transaction) -> tuple[StoredPart, ...]:
        found = in_hand(tx, delivery_id, attempt)
        if found.parts:
            return found.parts
        parts = [(delivery_id, index, f"{found.key}-{index}", *cell) for index, cell in enumerate(cells)]
        tx.run_many(ADD_PART, parts)
        return _stands(tx, delivery_id, attempt).parts

    return work


def mark_sent(operation: MarkSent) -> Callable[[Transaction], Delivery]:
    """Work of :class:`~hermes_hookspecs.operations.MarkSent`."""
    delivery_id, attempt, now = operation.delivery_id, operation.attempt, operation.now

    def work(tx: Transaction) -> Delivery:
        found = _of_attempt(tx, delivery_id, attempt)
        if tx.one(SENT_BY, (delivery_id, operation.index)) == (attempt,):
            return found
        first = next((part.index for part in found.parts if part.sent_at is None), None)
        if found.status != SENDING or operation.index != first:
            raise Conflict(
                f"part {operation.index} of delivery {delivery_id} is not the next of attempt {attempt}; "
                "nothing was written"
            )
        sent = (now, attempt, operation.platform_message_id, operation.possible_repeat)
        tx.run(MARK_PART, (*sent, delivery_id, operation.index))
        if operation.index == found.parts[-1].index:
            tx.run(MARK_LAST, (now, delivery_id))
        else:
            tx.run(MARK, (delivery_id,))
        for update in operation.state:
            put(tx, update, now)
        if operation.opened is not None and found.lineage_id is not None and found.kind != REPLY:
            _bind_opened(tx, operation.opened, found.lineage_id, now)
        return _stands(tx, delivery_id, attempt)

    return work


def _bind_opened(tx: Transaction, opened: OpenedThread, lineage_id: LineageId, now: int) -> None:
    """Let the key of a thread lead to the lineage that opened it; a route that leads somewhere stays as it is."""
    there = route(tx, opened.key)
    if there is not None and there.lineage_id is not None:
        return
    if entry_of_lineage(tx, opened.key, lineage_id) is None:
        return
    bind = BindRoute(
        key=opened.key,
        key_version=opened.key_version,
        source=opened.source,
        policy=opened.policy,
        lineage_id=lineage_id,
        now=now,
    )
    lead(tx, bind, lineage_id)
    # Whoever was quicker to write there than this route: behind a key that leads somewhere nothing waits without it.
    tx.run(ADOPT, (lineage_id, opened.key))


def defer_delivery(operation: DeferDelivery) -> Callable[[Transaction], Delivery]:
    """Work of :class:`~hermes_hookspecs.operations.DeferDelivery`."""
    delivery_id, attempt = operation.delivery_id, operation.attempt

    def work(tx: Transaction) -> Delivery:
        found = in_hand(tx, delivery_id, attempt)
        uncertain = found.uncertain or (operation.maybe_sent and bool(found.parts))
        values = (operation.due_at, operation.awaits_inbound, operation.failed, uncertain, operation.error)
        tx.run(DEFER, (*values, delivery_id))
        return _stands(tx, delivery_id, attempt)

    return work


def fail_delivery(operation: FailDelivery) -> Callable[[Transaction], Delivery]:
    """Work of :class:`~hermes_hookspecs.operations.FailDelivery`."""
    delivery_id, attempt = operation.delivery_id, operation.attempt

    def work(tx: Transaction) -> Delivery:
        found = in_hand(tx, delivery_id, attempt)
        uncertain = found.uncertain or (operation.maybe_sent and bool(found.parts))
        tx.run(FAIL, (operation.now, uncertain, operation.error, delivery_id))
        return _stands(tx, delivery_id, attempt)

    return work
