"""Rows of the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_attachments, read_file, read_holder, read_source
from hermes_hookspecs.encoding import encode_text
from hermes_hookspecs.outbox import SENT, Delivery, StoredPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import DeliveryId, InboxId, LineageId, SessionKey, TurnId
    from hermes_hookspecs.source import Entrance

    Number = int | None
    DeliveryRow = tuple[
        DeliveryId, str, str, str, SessionKey, LineageId | None, TurnId | None, InboxId | None, str, str, int, int,
        str | None, int, int, int, int, str, Number, str | None,
    ]  # fmt: skip
    PartRow = tuple[int, str, str, str, Number, str | None, int, str | None]

__all__ = ["by_key", "deliveries", "delivery", "next_deliveries"]

DELIVERY = """
    SELECT id, key, target, text, session_key, lineage_id, turn_id, inbox_id, kind, status, attempt, failures, owner,
        created_at, due_at, awaits_inbound, uncertain, error, settled_at, files
    FROM outbox
"""
NEWEST = f"{DELIVERY} ORDER BY id DESC LIMIT ?"
NEWEST_UNSENT = f"{DELIVERY} WHERE status <> 'sent' AND status = ? ORDER BY id DESC LIMIT ?"
# Most rows were sent, so the newest of them are among the newest of all.
NEWEST_SENT = f"{DELIVERY} WHERE status = 'sent' ORDER BY id DESC LIMIT ?"
PARTS = """
    SELECT part, text, format, key, sent_at, platform_message_id, possible_repeat, file
    FROM outbox_parts WHERE delivery_id = ? ORDER BY part
"""
# From one address to the next: a long queue at one of them is stepped over, not read.
HEADS = """
    WITH RECURSIVE heads (address) AS (
        SELECT (SELECT min(address) FROM outbox WHERE settled_at IS NULL AND address >= ?1 AND address < ?2)
        UNION ALL
        SELECT (SELECT min(address) FROM outbox WHERE settled_at IS NULL AND address > heads.address AND address < ?2)
        FROM heads WHERE heads.address IS NOT NULL
    )
    SELECT (SELECT min(id) FROM outbox WHERE settled_at IS NULL AND address = heads.address)
    FROM heads WHERE heads.address IS NOT NULL
"""


def _delivery(reader: Reader, row: tuple[SQLiteValue, ...]) -> Delivery:
    (
        delivery_id, key, target, text, session_key, lineage_id, turn_id, inbox_id, kind, status, attempt, failures,
        owner, created, due, awaits, uncertain, error, settled, files,
    ) = cast("DeliveryRow", row)  # columns of DELIVERY  # fmt: skip
    return Delivery(
        id=delivery_id,
        key=key,
        target=read_source(target),
        text=text,
        session_key=session_key,
        lineage_id=lineage_id,
        turn_id=turn_id,
        inbox_id=inbox_id,
        kind=kind,
        status=status,
        attempt=attempt,
        failures=failures,
        owner=None if owner is None else read_holder(owner),
        created_at=created,
        due_at=due,
        awaits_inbound=bool(awaits),
        uncertain=bool(uncertain),
        error=error,
        settled_at=settled,
        parts=tuple(map(_part, reader.all(PARTS, (delivery_id,)))),
        files=() if files is None else read_attachments(files),
    )


def _part(row: tuple[SQLiteValue, ...]) -> StoredPart:
    index, text, form, key, sent_at, message_id, possible_repeat, file = cast("PartRow", row)  # columns of PARTS
    return StoredPart(
        index=index,
        text=text,
        format=form,
        key=key,
        sent_at=sent_at,
        platform_message_id=message_id,
        possible_repeat=bool(possible_repeat),
        file=None if file is None else read_file(file),
    )


def delivery(reader: Reader, delivery_id: DeliveryId) -> Delivery | None:
    """One delivery with its parts."""
    row = reader.one(f"{DELIVERY} WHERE id = ?", (delivery_id,))
    return None if row is None else _delivery(reader, row)


def by_key(reader: Reader, key: str) -> Delivery | None:
    """The delivery with an idempotency key."""
    row = reader.one(f"{DELIVERY} WHERE key = ?", (key,))
    return None if row is None else _delivery(reader, row)


def deliveries(reader: Reader, statuses: Sequence[str], limit: int) -> tuple[Delivery, ...]:
    """Deliveries with one of these statuses, all when there is none, newest first."""
    most = max(limit, 0)
    if not statuses:
        return tuple(_delivery(reader, row) for row in reader.all(NEWEST, (most,)))
    rows: list[tuple[SQLiteValue, ...]] = []
    for status in set(statuses):
        rows += reader.all(NEWEST_SENT, (most,)) if status == SENT else reader.all(NEWEST_UNSENT, (status, most))
    rows.sort(key=_number, reverse=True)
    return tuple(_delivery(reader, row) for row in rows[:most])


def _number(row: tuple[SQLiteValue, ...]) -> int:
    return cast("int", row[0])  # the id stands first


def next_deliveries(reader: Reader, entrances: Iterable[Entrance], limit: int) -> tuple[Delivery, ...]:
    """The oldest open delivery of each address of these entrances, longest waiting first."""
    heads: list[DeliveryId] = []
    for platform, account in {(entrance.platform, entrance.account_id) for entrance in entrances}:
        # An address begins with both; the sign behind the colon ends the range.
        place = f"{encode_text(platform)}:{encode_text(account)}"
        rows = reader.all(HEADS, (f"{place}:", f"{place};"))
        heads += [head for (head,) in cast("list[tuple[DeliveryId]]", rows)]  # the column of HEADS
    found = [delivery(reader, head) for head in sorted(heads)[: max(limit, 0)]]
    return tuple(each for each in found if each is not None)
