"""Rows of the inbox."""

# ruff: noqa: S608 - statements are put together from constants of this module, values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_attachments, read_holder, read_outcome, read_source, read_strings
from hermes_hookspecs.inbox import InboxItem
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey

    Text = str | None
    ItemRow = tuple[
        InboxId, SessionKey, str, str, str, Text, str, int, Text, Text, str, LineageId | None, Text, str, int, str,
        Text,
    ]  # fmt: skip

__all__ = [
    "attended",
    "controls",
    "controls_of_key",
    "item",
    "quarantined",
    "unrouted",
    "waiting",
    "waiting_of_key",
    "work",
]

ITEM = """
    SELECT id, session_key, source, platform, account_id, terminal, text, accepted_at, identities, attachments, kind,
        lineage_id, waiter, status, attempts, error, outcome
    FROM inbox
"""
WAITING = f"{ITEM} WHERE lineage_id = ? AND status = 'pending' AND kind <> 'control' ORDER BY id LIMIT ?"
WAITING_OF_KEY = f"{ITEM} WHERE session_key = ? AND status = 'pending' AND kind <> 'control' ORDER BY id LIMIT ?"

# What nobody waits for in its own call, by the account that it came in at.
OF_ACCOUNT = "platform = ? AND account_id = ? AND waiter IS NULL"
WORK = f"""
    SELECT lineage_id, min(id) FROM inbox
    WHERE {OF_ACCOUNT} AND status = 'pending' AND kind <> 'control' AND lineage_id IS NOT NULL GROUP BY lineage_id
"""
UNROUTED = f"""
    {ITEM} WHERE {OF_ACCOUNT} AND status = 'pending' AND kind <> 'control' AND lineage_id IS NULL ORDER BY id LIMIT ?
"""
OPEN_CONTROL = "kind = 'control' AND status IN ('pending', 'applied') AND waiter IS NULL"
CONTROLS = f"""
    {ITEM} WHERE id IN (
        SELECT min(id) FROM inbox WHERE platform = ? AND account_id = ? AND {OPEN_CONTROL} GROUP BY session_key
    ) ORDER BY id LIMIT ?
"""
CONTROLS_OF_KEY = f"{ITEM} WHERE session_key = ? AND {OPEN_CONTROL} ORDER BY id LIMIT ?"
# Few messages wait at a time: the index of those that do is small.
ATTENDED = f"{ITEM} WHERE status = 'pending' AND waiter IS NOT NULL ORDER BY session_key, id LIMIT ?"
QUARANTINED = f"{ITEM} WHERE status = 'quarantined' ORDER BY id DESC LIMIT ?"


def _item(row: tuple[SQLiteValue, ...]) -> InboxItem:
    (
        inbox_id, key, source, platform, account, terminal, text, accepted, identities, attachments, kind, lineage_id,
        waiter, status, attempts, error, outcome,
    ) = cast("ItemRow", row)  # columns of ITEM  # fmt: skip
    return InboxItem(
        id=inbox_id,
        session_key=key,
        source=read_source(source),
        entrance=Entrance(platform, account, terminal),
        text=text,
        accepted_at=accepted,
        identities=read_strings(identities),
        attachments=read_attachments(attachments),
        kind=kind,
        lineage_id=lineage_id,
        waiter=None if waiter is None else read_holder(waiter),
        status=status,
        attempts=attempts,
        error=error,
        outcome=read_outcome(outcome),
    )


def item(reader: Reader, inbox_id: InboxId) -> InboxItem | None:
    """One row, whatever became of it."""
    row = reader.one(f"{ITEM} WHERE id = ?", (inbox_id,))
    return None if row is None else _item(row)


def waiting(reader: Reader, lineage_id: LineageId, limit: int) -> tuple[InboxItem, ...]:
    """Pending messages of a lineage, oldest first; commands are no messages."""
    return tuple(map(_item, reader.all(WAITING, (lineage_id, max(limit, 0)))))


def waiting_of_key(reader: Reader, key: SessionKey, limit: int) -> tuple[InboxItem, ...]:
    """Pending messages of a key, oldest first, also those without a lineage."""
    return tuple(map(_item, reader.all(WAITING_OF_KEY, (key, max(limit, 0)))))


def work(reader: Reader, entrances: Iterable[Entrance], limit: int) -> tuple[LineageId, ...]:
    """Lineages with pending messages of these entrances that nobody waits for, longest waiting first."""
    oldest: dict[LineageId, int] = {}
    for account in _accounts(entrances):
        for lineage_id, inbox_id in cast("list[tuple[LineageId, int]]", reader.all(WORK, account)):  # columns of WORK
            oldest[lineage_id] = min(inbox_id, oldest.get(lineage_id, inbox_id))
    return tuple(sorted(oldest, key=oldest.__getitem__)[: max(limit, 0)])


def unrouted(reader: Reader, entrances: Iterable[Entrance], limit: int) -> tuple[InboxItem, ...]:
    """Pending messages of these entrances without a lineage, oldest first."""
    return _of_accounts(reader, UNROUTED, entrances, limit)


def controls(reader: Reader, entrances: Iterable[Entrance], limit: int) -> tuple[InboxItem, ...]:
    """The oldest command of each key of these entrances that nobody waits for and that is not done, oldest first."""
    return _of_accounts(reader, CONTROLS, entrances, limit)


def controls_of_key(reader: Reader, key: SessionKey, limit: int) -> tuple[InboxItem, ...]:
    """Commands of a key that nobody waits for and that are not done, oldest first."""
    return tuple(map(_item, reader.all(CONTROLS_OF_KEY, (key, max(limit, 0)))))


def attended(reader: Reader, limit: int) -> tuple[InboxItem, ...]:
    """Pending rows whose sender waits in the same call, by key, those of one key oldest first."""
    return tuple(map(_item, reader.all(ATTENDED, (max(limit, 0),))))


def _of_accounts(reader: Reader, sql: str, entrances: Iterable[Entrance], limit: int) -> tuple[InboxItem, ...]:
    most = max(limit, 0)
    found = [_item(row) for account in _accounts(entrances) for row in reader.all(sql, (*account, most))]
    return tuple(sorted(found, key=lambda item: item.id)[:most])


def _accounts(entrances: Iterable[Entrance]) -> set[tuple[str, str]]:
    """Platform and account of each; who waits at a terminal waits in the same call."""
    return {(entrance.platform, entrance.account_id) for entrance in entrances}


def quarantined(reader: Reader, limit: int) -> tuple[InboxItem, ...]:
    """Rows that could not be read, newest first."""
    return tuple(map(_item, reader.all(QUARANTINED, (max(limit, 0),))))
