"""Deliveries: stored once per key, sent in order per address, by one attempt at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.plugin_state import write_state
from hermes_hookspecs.errors import Conflict, DeliveryNotFound
from hermes_hookspecs.ids import DeliveryId
from hermes_hookspecs.inbox import APPLIED, CONTROL, PENDING, SETTLED
from hermes_hookspecs.outbox import (
    DROPPED,
    FAILED,
    JOINED,
    OPEN_STATES,
    REPLY,
    SENDING,
    SENT,
    WAITING,
    Delivery,
    StoredPart,
    address_of,
)
from hermes_hookspecs.sessions import Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.operations import (
        ClaimDelivery,
        DeferDelivery,
        Deliver,
        DropDelivery,
        FailDelivery,
        JoinDeliveries,
        MarkSent,
        RetryDelivery,
        SplitDelivery,
    )
    from hermes_hookspecs.outbox import DeliveryDraft, OpenedThread
    from hermes_hookspecs.source import SessionSource

__all__ = [
    "claim_delivery",
    "defer_delivery",
    "deliver",
    "drop_delivery",
    "fail_delivery",
    "forget_deliveries",
    "heads",
    "join_deliveries",
    "mark_sent",
    "retry_delivery",
    "split_delivery",
    "store_deliveries",
    "wake_deliveries",
]


# storing
def deliver(tables: Tables, operation: Deliver) -> tuple[DeliveryId, ...]:
    """Run :class:`~hermes_hookspecs.operations.Deliver`."""
    item = None if operation.settle is None else tables.inbox.get(operation.settle)
    if item is not None and item.kind == CONTROL and item.status in {PENDING, APPLIED}:
        tables.settle(item, SETTLED, operation.now)
    return store_deliveries(tables, operation.drafts, operation.now)


def store_deliveries(tables: Tables, drafts: Iterable[DeliveryDraft], now: int) -> tuple[DeliveryId, ...]:
    """Store deliveries whose keys are new; return the rows of all keys, in order of ``drafts``."""
    known = {row.key: row.id for row in tables.deliveries.values()}
    ids: list[DeliveryId] = []
    for draft in drafts:
        if draft.key not in known:
            known[draft.key] = _store(tables, draft, now)
        ids.append(known[draft.key])
    return tuple(ids)


def _store(tables: Tables, draft: DeliveryDraft, now: int) -> DeliveryId:
    tables.last_delivery += 1
    delivery_id = DeliveryId(tables.last_delivery)
    tables.deliveries[delivery_id] = Delivery(
        id=delivery_id,
        **attrs.asdict(draft, recurse=False),
        status=WAITING,
        attempt=0,
        failures=0,
        owner=None,
        created_at=now,
        due_at=now,
        awaits_inbound=False,
        uncertain=False,
        error="",
        settled_at=None,
        parts=(),
    )
    return delivery_id


def wake_deliveries(tables: Tables, source: SessionSource, now: int) -> None:
    """Let the deliveries go on that await a message from the address of ``source``; remember it for those in hand."""
    address = address_of(source)
    there = [
        row for row in tables.deliveries.values() if row.status in OPEN_STATES and address_of(row.target) == address
    ]
    for row in there:
        if row.awaits_inbound:
            _change(tables, row, awaits_inbound=False, due_at=now)
    tables.answered |= {row.id for row in there if row.status == SENDING}


def forget_deliveries(tables: Tables, ids: Iterable[DeliveryId]) -> None:
    """Remove deliveries with their parts."""
    ids = tuple(ids)
    tables.answered = tables.answered.difference(ids)
    for delivery_id in ids:
        for part in tables.deliveries.pop(delivery_id).parts:
            tables.marked.pop((delivery_id, part.index), None)


def heads(tables: Tables) -> list[Delivery]:
    """Return the oldest open delivery of each address, oldest first."""
    found: dict[str, Delivery] = {}
    for row in tables.deliveries.values():
        if row.status in OPEN_STATES:
            found.setdefault(address_of(row.target), row)
    return list(found.values())


# the attempt that sends
def claim_delivery(tables: Tables, operation: ClaimDelivery) -> Delivery | None:
    """Run :class:`~hermes_hookspecs.operations.ClaimDelivery`."""
    row = tables.deliveries.get(operation.delivery_id)
    if row is None or row.attempt != operation.expected_attempt or row not in heads(tables):
        return None
    taken_over = row.status == SENDING
    if taken_over and not operation.presumed_dead:
        return None
    if not taken_over and (row.awaits_inbound or not row.is_due(operation.now)):
        return None
    uncertain = row.uncertain or (taken_over and bool(row.parts))
    tables.answered -= {row.id}
    return _change(tables, row, status=SENDING, attempt=row.attempt + 1, owner=operation.owner, uncertain=uncertain)


def split_delivery(tables: Tables, operation: SplitDelivery) -> tuple[StoredPart, ...]:
    """Run :class:`~hermes_hookspecs.operations.SplitDelivery`."""
    row = _claimed(tables, operation)
    if not row.parts:
        parts = tuple(
            StoredPart(index=index, text=part.text, format=part.format, key=f"{row.key}-{index}", file=part.file)
            for index, part in enumerate(operation.parts)
        )
        row = _change(tables, row, parts=parts)
    return row.parts


def join_deliveries(tables: Tables, operation: JoinDeliveries) -> Delivery | None:
    """Run :class:`~hermes_hookspecs.operations.JoinDeliveries`."""
    row = _claimed(tables, operation)
    address = address_of(row.target)
    behind = [
        each
        for each in tables.deliveries.values()
        if each.id > row.id and each.status in OPEN_STATES and address_of(each.target) == address
    ]
    others = behind[: len(operation.joined)]
    can_be = all(
        each.status == WAITING and each.attempt == 0 and not each.files and each.lineage_id == row.lineage_id
        for each in others
    )
    are_those = bool(others) and tuple(each.id for each in others) == operation.joined
    if not are_those or not can_be or not operation.parts or row.files or row.uncertain:
        return None
    sent = tuple(part for part in row.parts if part.sent_at is not None)
    parts = tuple(
        StoredPart(index=index, text=part.text, format=part.format, key=f"{row.key}-{index}-{row.attempt}")
        for index, part in enumerate(operation.parts, len(sent))
    )
    for each in others:
        error = f"it goes out with delivery {row.id}"
        _change(tables, each, status=JOINED, settled_at=operation.now, error=error)
    return _change(tables, row, text=operation.text, parts=sent + parts)


def mark_sent(tables: Tables, operation: MarkSent) -> Delivery:
    """Run :class:`~hermes_hookspecs.operations.MarkSent`."""
    row = tables.deliveries.get(operation.delivery_id)
    place = (operation.delivery_id, operation.index)
    if row is not None and tables.marked.get(place) == operation.attempt == row.attempt:
        return row
    row = _claimed(tables, operation)
    unsent = [part for part in row.parts if part.sent_at is None]
    if not unsent or unsent[0].index != operation.index:
        raise Conflict(f"part {operation.index} of delivery {row.id} is not the next one to be sent; look again")
    sent = attrs.evolve(
        unsent[0],
        sent_at=operation.now,
        platform_message_id=operation.platform_message_id,
        possible_repeat=operation.possible_repeat,
    )
    tables.marked[place] = operation.attempt
    for update in operation.state:
        write_state(tables, update, operation.now)
    if operation.opened is not None:
        _open_thread(tables, row, operation.opened, operation.now)
    parts = tuple(sent if part.index == sent.index else part for part in row.parts)
    row = _change(tables, row, parts=parts, uncertain=False)
    if len(unsent) > 1:
        return row
    return _change(tables, row, status=SENT, settled_at=operation.now, error="")


def _open_thread(tables: Tables, row: Delivery, opened: OpenedThread, now: int) -> None:
    """Let the key of a thread lead to the delivery's lineage, unless it leads somewhere; what waits there follows."""
    old = tables.routes.get(opened.key)
    leads = old is not None and old.lineage_id is not None
    if leads or row.kind == REPLY or row.lineage_id is None or row.lineage_id not in tables.lineages:
        return
    tables.routes[opened.key] = Route(
        key=opened.key,
        source=opened.source,
        lineage_id=row.lineage_id,
        key_version=opened.key_version,
        policy=opened.policy,
        created_at=now if old is None else old.created_at,
        updated_at=now,
        pending_title=None if old is None else old.pending_title,
    )
    tables.adopt_waiting(opened.key, row.lineage_id)


def defer_delivery(tables: Tables, operation: DeferDelivery) -> Delivery:
    """Run :class:`~hermes_hookspecs.operations.DeferDelivery`."""
    row = _claimed(tables, operation)
    return _change(
        tables,
        row,
        status=WAITING,
        due_at=operation.due_at,
        awaits_inbound=operation.awaits_inbound and row.id not in tables.answered,
        failures=row.failures + operation.failed,
        uncertain=row.uncertain or (operation.maybe_sent and bool(row.parts)),
        error=operation.error,
    )


def fail_delivery(tables: Tables, operation: FailDelivery) -> Delivery:
    """Run :class:`~hermes_hookspecs.operations.FailDelivery`."""
    row = _claimed(tables, operation)
    return _change(
        tables,
        row,
        status=FAILED,
        settled_at=operation.now,
        uncertain=row.uncertain or (operation.maybe_sent and bool(row.parts)),
        error=operation.error,
    )


def _claimed(
    tables: Tables, operation: SplitDelivery | JoinDeliveries | MarkSent | DeferDelivery | FailDelivery
) -> Delivery:
    """Return the delivery that the operation's attempt is sending.

    :raises Conflict: the attempt is not the row's, or sends no longer.
    """
    row = tables.deliveries.get(operation.delivery_id)
    if row is None or row.status != SENDING or row.attempt != operation.attempt:
        raise Conflict(f"attempt {operation.attempt} does not send delivery {operation.delivery_id} any more")
    return row


# what people do
def retry_delivery(tables: Tables, operation: RetryDelivery) -> Delivery:
    """Run :class:`~hermes_hookspecs.operations.RetryDelivery`."""
    row = _found(tables, operation.delivery_id)
    is_sending = row.status == SENDING
    if row.status in {SENT, JOINED} or (is_sending and operation.presumed_dead != row.attempt):
        raise Conflict(f"delivery {row.id} is {row.status}; only one that failed, was dropped or waits is retried")
    return _change(
        tables,
        row,
        status=WAITING,
        due_at=operation.now,
        failures=0,
        awaits_inbound=False,
        settled_at=None,
        uncertain=row.uncertain or (is_sending and bool(row.parts)),
    )


def drop_delivery(tables: Tables, operation: DropDelivery) -> Delivery:
    """Run :class:`~hermes_hookspecs.operations.DropDelivery`."""
    row = _found(tables, operation.delivery_id)
    if row.status == DROPPED:
        return row
    is_sending = row.status == SENDING
    if row.status in {SENT, JOINED} or (is_sending and operation.presumed_dead != row.attempt):
        raise Conflict(f"delivery {row.id} is {row.status}; it cannot be dropped")
    uncertain = row.uncertain or (is_sending and bool(row.parts))
    return _change(tables, row, status=DROPPED, settled_at=operation.now, uncertain=uncertain)


def _found(tables: Tables, delivery_id: DeliveryId) -> Delivery:
    row = tables.deliveries.get(delivery_id)
    if row is None:
        raise DeliveryNotFound(delivery_id)
    return row


def _change(tables: Tables, row: Delivery, **fields: object) -> Delivery:
    # attrs cannot say in types that the class of a value takes its own fields as keyword arguments
    changed = attrs.evolve(row, **fields)  # type: ignore[arg-type]
    tables.deliveries[row.id] = changed
    return changed
