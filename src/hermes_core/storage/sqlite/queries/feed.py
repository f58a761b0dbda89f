"""The change feed: what happened to rows and lineages, for whoever derives data from them."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_hookspecs.state import Change

if TYPE_CHECKING:
    from hermes_core.storage.sqlite.transaction import Reader
    from hermes_hookspecs.ids import LineageId

    ChangeRow = tuple[int, str, LineageId, str | None, int | None, int]

__all__ = ["changes"]

STORE_ID = "SELECT value FROM meta WHERE name = 'store_id'"
NEWEST = "SELECT seq FROM sqlite_sequence WHERE name = 'changes'"
OLDEST = "SELECT min(id) FROM changes"
CHANGES = """
    SELECT c.id, c.kind, coalesce(l.id, e.lineage_id),
        iif(c.message_id IS NULL, NULL, coalesce(m.session_id, e.session_id)), c.message_id, c.at
    FROM changes AS c
    LEFT JOIN lineages AS l ON l.no = c.lineage_no
    LEFT JOIN messages AS m ON m.id = c.message_id
    LEFT JOIN erased AS e ON e.lineage_no = c.lineage_no
    WHERE c.id > ? ORDER BY c.id LIMIT ?
"""


def changes(reader: Reader, after: str | None, limit: int) -> tuple[tuple[Change, ...], str]:
    """Changes behind a cursor, oldest first, and the cursor behind them.

    :raises ValueError: the cursor is another store's, or none, or changes behind it are gone.
    """
    store = str(cast("tuple[str]", reader.one(STORE_ID))[0])  # written when the file was made
    position = _begin(reader) if after is None else _position(reader, after, store)
    rows = cast("list[ChangeRow]", reader.all(CHANGES, (position, max(limit, 0))))  # columns of CHANGES
    found = tuple(
        Change(kind=kind, lineage_id=lineage_id, session_id=session_id, message_id=message_id, at=at)
        for _, kind, lineage_id, session_id, message_id, at in rows
    )
    return found, f"{store}.{rows[-1][0] if rows else position}"


def _position(reader: Reader, cursor: str, store: str) -> int:
    name, dot, number = cursor.partition(".")
    if not dot or not (number.isascii() and number.isdecimal()) or len(number) > 18:
        raise ValueError(f"{cursor[:80]!r} is no cursor of a change feed")
    if name != store:
        raise ValueError("the cursor belongs to another store: begin again from the oldest change")
    position = int(number)
    if position > _newest(reader):
        raise ValueError("the cursor stands behind the newest change of this store: begin again from the oldest change")
    if position < _begin(reader):
        raise ValueError("changes behind the cursor are gone: read all rows anew, then begin from the oldest change")
    return position


def _newest(reader: Reader) -> int:
    newest = reader.one(NEWEST)
    return 0 if newest is None else cast("tuple[int]", newest)[0]  # a sequence is a number


def _begin(reader: Reader) -> int:
    """The position before the oldest change that is kept; ids leave no gaps."""
    found = reader.one(OLDEST)
    oldest = None if found is None else cast("int | None", found[0])  # an id
    return _newest(reader) if oldest is None else oldest - 1
