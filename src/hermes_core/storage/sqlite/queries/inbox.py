"""Rows of the inbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_attachments, read_holder, read_source, read_strings
from hermes_hookspecs.inbox import InboxItem
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader, SQLiteValue
    from hermes_hookspecs.ids import InboxId, LineageId, SessionKey

    Text = str | None
    ItemRow = tuple[
        InboxId, SessionKey, str, str, str, Text, str, int, Text, Text, str, LineageId | None, Text, str, int, str
    ]

__all__ = ["item", "waiting", "waiting_of_key"]

ITEM = """
    SELECT id, session_key, source, platform, account_id, terminal, text, accepted_at, identities, attachments, kind,
        lineage_id, waiter, status, attempts, error
    FROM inbox
"""
WAITING = f"{ITEM} WHERE lineage_id = ? AND status = 'pending' AND kind <> 'control' ORDER BY id LIMIT ?"
WAITING_OF_KEY = f"{ITEM} WHERE session_key = ? AND status = 'pending' AND kind <> 'control' ORDER BY id LIMIT ?"


def _item(row: tuple[SQLiteValue, ...]) -> InboxItem:
    (
        inbox_id, key, source, platform, account, terminal, text, accepted, identities, attachments, kind, lineage_id,
        waiter, status, attempts, error,
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
