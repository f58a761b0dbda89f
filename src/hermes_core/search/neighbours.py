"""The rows before and behind one row of a lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ids import MessageId

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.ids import LineageId, SessionId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal

__all__ = ["MOST_COUNTED", "Neighbours"]

MOST_COUNTED = 100
"""Rows before or behind a window are counted up to here."""
_FIRST_REACH = 64
_REACH_GROWS = 8
_PAGE = 200
_MOST_ROWS = 2000  # rows of other roles that one answer walks over


class Neighbours:
    """Reads around in one lineage; rows of other roles than ``roles`` are not there, but a row that is asked for is."""

    def __init__(self, store: StoreReader, lineage_id: LineageId, principal: Principal, roles: Sequence[str]) -> None:
        self._store = store
        self._lineage_id = lineage_id
        self._principal = principal
        self._roles = roles

    def around(self, anchor: MessageId, depth: int) -> Sequence[Message]:
        """Return up to ``depth`` rows on each side of a row and itself, in order; nothing where it is not there."""
        here = self._after(MessageId(anchor - 1), limit=1)
        if not here or here[0].id != anchor:
            return ()
        return (*self._before(anchor, depth), here[0], *self._behind(anchor, depth))

    def first(self, count: int) -> Sequence[Message]:
        """Return the first rows of the lineage."""
        return self._behind(None, count)

    def last(self, count: int, *, session_id: SessionId | None = None) -> Sequence[Message]:
        """Return the last rows of the lineage or of one segment."""
        reach = count * 4
        while True:
            rows = self._store.last_messages(self._lineage_id, self._principal, count=reach, session_id=session_id)
            wanted = self._wanted(rows)
            if len(wanted) >= count or len(rows) < reach or reach >= _MOST_ROWS:
                return wanted[-count:]
            reach *= _REACH_GROWS

    def count_before(self, row: MessageId) -> int:
        """Return how many rows stand before a row, at most a hundred."""
        return len(self._before(row, MOST_COUNTED))

    def count_after(self, row: MessageId) -> int:
        """Return how many rows stand behind a row, at most a hundred."""
        return len(self._behind(row, MOST_COUNTED))

    def _before(self, row: MessageId, count: int) -> Sequence[Message]:
        """Return the last ``count`` rows before a row.

        Ids are of the whole store and grow: the reach into lower ids grows until it holds enough.
        """
        reach = max(_FIRST_REACH, count)
        while True:
            start = max(row - reach, 0)
            rows = [one for one in self._after(MessageId(start), limit=reach) if one.id < row]
            found = self._wanted(rows)
            if len(found) >= count or start == 0 or len(rows) >= _MOST_ROWS:
                return found[-count:]
            reach *= _REACH_GROWS

    def _behind(self, row: MessageId | None, count: int) -> list[Message]:
        found: list[Message] = []
        walked = 0
        while len(found) < count and walked < _MOST_ROWS:
            page = self._after(row, limit=max(_PAGE if walked else count * 2, 1))
            found += self._wanted(page)
            if not page:
                break
            walked += len(page)
            row = page[-1].id
        return found[:count]

    def _after(self, row: MessageId | None, *, limit: int) -> Sequence[Message]:
        return self._store.messages(self._lineage_id, self._principal, after=row, limit=limit)

    def _wanted(self, rows: Iterable[Message]) -> list[Message]:
        return [row for row in rows if row.role in self._roles]
