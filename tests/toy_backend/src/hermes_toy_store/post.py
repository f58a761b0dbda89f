"""Operations on deliveries, on who serves what, and what is old enough to go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import Conflict, DeliveryNotFound
from hermes_hookspecs.ids import DeliveryId
from hermes_hookspecs.inbox import CONTROL, EntranceServer
from hermes_hookspecs.outbox import OPEN_STATES, REPLY, Delivery, DeliveryDraft, StoredPart, address_of
from hermes_hookspecs.sessions import Route

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.turns import LeaseHolder
    from hermes_toy_store.book import Book


def store(book: Book, drafts: Iterable[DeliveryDraft], now: int) -> tuple[DeliveryId, ...]:
    """Store deliveries whose key is new."""
    ids = []
    for draft in drafts:
        known = next((row.id for row in book.deliveries.values() if row.key == draft.key), None)
        if known is None:
            book.last_delivery += 1
            known = DeliveryId(book.last_delivery)
            book.deliveries[known] = Delivery(
                id=known,
                **attrs.asdict(draft, recurse=False),
                status="waiting",
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
        ids.append(known)
    return tuple(ids)


def deliver(book: Book, op: ops.Deliver) -> tuple[DeliveryId, ...]:
    item = book.inbox.get(op.settle) if op.settle is not None else None
    if item is not None and item.kind == CONTROL and item.status in {"pending", "applied"}:
        book.settle(item, "done", op.now)
    return store(book, op.drafts, op.now)


def heads(book: Book) -> list[Delivery]:
    """Return the oldest open delivery of each address."""
    found: dict[str, Delivery] = {}
    for row in book.deliveries.values():
        if row.status in OPEN_STATES:
            found.setdefault(address_of(row.target), row)
    return list(found.values())


def claim(book: Book, op: ops.ClaimDelivery) -> Delivery | None:
    row = next((row for row in heads(book) if row.id == op.delivery_id), None)
    if row is None or row.attempt != op.expected_attempt:
        return None
    sends = row.status == "sending"
    if (sends and not op.presumed_dead) or (not sends and (row.awaits_inbound or not row.is_due(op.now))):
        return None
    uncertain = row.uncertain or (sends and row.parts != ())
    return book.send(row, status="sending", owner=op.owner, attempt=row.attempt + 1, uncertain=uncertain)


def _mine(
    book: Book, op: ops.SplitDelivery | ops.JoinDeliveries | ops.MarkSent | ops.DeferDelivery | ops.FailDelivery
) -> Delivery:
    row = book.deliveries.get(op.delivery_id)
    if row is None or (row.status, row.attempt) != ("sending", op.attempt):
        raise Conflict(f"attempt {op.attempt} does not send delivery {op.delivery_id}")
    return row


def split(book: Book, op: ops.SplitDelivery) -> tuple[StoredPart, ...]:
    row = _mine(book, op)
    if not row.parts:
        made = [
            StoredPart(index=index, text=part.text, format=part.format, key=f"{row.key}-{index}", file=part.file)
            for index, part in enumerate(op.parts)
        ]
        row = book.send(row, parts=tuple(made))
    return row.parts


def join(book: Book, op: ops.JoinDeliveries) -> Delivery | None:
    row = _mine(book, op)
    there = [each for each in book.deliveries.values() if address_of(each.target) == address_of(row.target)]
    behind = [each for each in there if each.id > row.id and each.status in OPEN_STATES][: len(op.joined)]
    taken = ("waiting", 0, (), row.lineage_id)
    fresh = all((each.status, each.attempt, each.files, each.lineage_id) == taken for each in behind)
    if (
        not (behind and op.parts)
        or [each.id for each in behind] != list(op.joined)
        or not fresh
        or row.uncertain
        or row.files
    ):
        return None
    parts = [part for part in row.parts if part.sent_at is not None]
    for draft in op.parts:
        key = f"{row.key}-{len(parts)}-{row.attempt}"
        parts.append(StoredPart(index=len(parts), text=draft.text, format=draft.format, key=key))
    for each in behind:
        book.send(each, status="joined", settled_at=op.now, error=f"it goes out with delivery {row.id}")
    return book.send(row, text=op.text, parts=tuple(parts))


def mark_sent(book: Book, op: ops.MarkSent) -> Delivery:
    from hermes_toy_store.doors import write_state

    known = book.deliveries.get(op.delivery_id)
    if known is not None and known.attempt == op.attempt == book.marked.get((op.delivery_id, op.index)):
        return known
    row = _mine(book, op)
    left = [part.index for part in row.parts if part.sent_at is None]
    if left[:1] != [op.index]:
        raise Conflict(f"part {op.index} is not the next one")
    for update in op.state:
        write_state(book, update, op.now)
    book.marked[op.delivery_id, op.index] = op.attempt
    parts = list(row.parts)
    parts[op.index] = attrs.evolve(
        parts[op.index],
        sent_at=op.now,
        platform_message_id=op.platform_message_id,
        possible_repeat=op.possible_repeat,
    )
    opened = None if row.kind == REPLY else op.opened
    old = None if opened is None else book.routes.get(opened.key)
    leads = old is not None and old.lineage_id is not None
    if opened is not None and row.lineage_id is not None and row.lineage_id in book.lineages and not leads:
        book.routes[opened.key] = Route(
            key=opened.key,
            source=opened.source,
            lineage_id=row.lineage_id,
            key_version=opened.key_version,
            policy=opened.policy,
            created_at=op.now if old is None else old.created_at,
            updated_at=op.now,
            pending_title=None if old is None else old.pending_title,
        )
        book.adopt(opened.key, row.lineage_id)
    ended = {} if len(left) > 1 else {"status": "sent", "settled_at": op.now, "error": ""}
    return book.send(row, parts=tuple(parts), uncertain=False, **ended)


def _doubt(row: Delivery, op: ops.DeferDelivery | ops.FailDelivery) -> bool:
    return row.uncertain or (op.maybe_sent and row.parts != ())


def defer(book: Book, op: ops.DeferDelivery) -> Delivery:
    row = _mine(book, op)
    return book.send(
        row,
        status="waiting",
        due_at=op.due_at,
        # a message that came while this attempt was sending is the one that it asks for
        awaits_inbound=op.awaits_inbound and book.heard.get(row.id) != row.attempt,
        failures=row.failures + (1 if op.failed else 0),
        error=op.error,
        uncertain=_doubt(row, op),
    )


def fail(book: Book, op: ops.FailDelivery) -> Delivery:
    row = _mine(book, op)
    return book.send(row, status="failed", settled_at=op.now, error=op.error, uncertain=_doubt(row, op))


def _there(book: Book, delivery_id: DeliveryId) -> Delivery:
    if delivery_id not in book.deliveries:
        raise DeliveryNotFound(delivery_id)
    return book.deliveries[delivery_id]


def retry(book: Book, op: ops.RetryDelivery) -> Delivery:
    row = _there(book, op.delivery_id)
    if row.status in {"sent", "joined"} or (row.status == "sending" and row.attempt != op.presumed_dead):
        raise Conflict(f"delivery {row.id} is {row.status}")
    uncertain = row.uncertain or (row.status == "sending" and row.parts != ())
    anew = {"due_at": op.now, "failures": 0, "awaits_inbound": False, "settled_at": None, "uncertain": uncertain}
    return book.send(row, status="waiting", **anew)


def drop(book: Book, op: ops.DropDelivery) -> Delivery:
    row = _there(book, op.delivery_id)
    if row.status in {"sent", "joined"} or (row.status == "sending" and row.attempt != op.presumed_dead):
        raise Conflict(f"delivery {row.id} is {row.status}")
    if row.status == "dropped":
        return row
    uncertain = row.uncertain or (row.status == "sending" and row.parts != ())
    return book.send(row, status="dropped", settled_at=op.now, uncertain=uncertain)


def _process(holder: LeaseHolder) -> tuple[object, ...]:
    return holder.host, holder.boot_id, holder.pid_namespace, holder.pid, holder.started


def serve(book: Book, op: ops.ServeEntrances) -> None:
    for door in op.entrances:
        old = book.servers.get((door, _process(op.holder)))
        book.servers[door, _process(op.holder)] = EntranceServer(
            entrance=door,
            holder=op.holder,
            beats=1 if old is None else old.beats + 1,
            since=op.now if old is None else old.since,
        )


def leave(book: Book, op: ops.LeaveEntrances) -> None:
    gone = [_process(holder) for holder in op.holders]
    book.servers = {place: server for place, server in book.servers.items() if place[1] not in gone}


def _owed(book: Book, item: InboxItem) -> bool:
    opened = [row for row in book.deliveries.values() if row.settled_at is None and row.inbox_id is not None]
    return any(row.session_key == item.session_key and (row.inbox_id or 0) <= item.id for row in opened)


def sweep(book: Book, op: ops.Sweep) -> ops.Swept:
    gone = [item for item, at in book.settled.items() if at < op.inbox_before and not _owed(book, book.inbox[item])]
    old = sorted((book.settled[item], item) for item in gone)[: op.limit]
    for _, item_id in old:
        del book.inbox[item_id], book.settled[item_id]
    book.identities = {known: row for known, row in book.identities.items() if row in book.inbox}
    ends = ((row.settled_at, row.id) for row in book.deliveries.values() if row.settled_at is not None)
    sent = sorted(end for end in ends if end[0] < op.outbox_before)[: op.limit]
    book.forget([delivery_id for _, delivery_id in sent])
    mortal = ((entry.expires_at, place) for place, entry in book.state.items() if entry.expires_at is not None)
    expired = sorted(each for each in mortal if each[0] <= op.now)[: op.limit]
    for _, place in expired:
        del book.state[place]
    told = 0
    while told < op.limit and book.feed and book.feed[0].at < op.changes_before:
        del book.feed[0]
        told += 1
    book.feed_begin += told
    more = op.limit in {len(old), len(sent), len(expired), told}
    return ops.Swept(inbox=len(old), outbox=len(sent), state=len(expired), changes=told, more=more)
