"""Filling the index: what the change feed brought, and what was there before the index.

Each step reads and prepares outside the transaction, then writes rows and watermark in one: a process that dies leaves
whole steps only, and of two that prepared the same step the second finds the watermark moved and writes nothing. What a
change says does not matter, only what is there now: a row that is stored and not hidden is put in as it stands, any
other is taken out. So a step may be repeated.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from hermes_fts5.documents import document
from hermes_fts5.schema import NAME, STEPS
from hermes_fts5.steps import (
    MERGES,
    backfill_times,
    feed_times,
    filling,
    merging,
    number,
    removing,
    rows_of_lineage,
    state,
    writing,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_fts5.documents import Document
    from hermes_hookspecs.ports.sqlite import SqliteAccess, SqliteReader, SqliteValue, SqliteWriter

    Cells = tuple[SqliteValue, ...]

__all__ = ["Indexer", "waiting"]

ROWS_OF_STEP = 64
ROWS_OF_BACKFILL = 96
CHARACTERS_OF_STEP = 24_000
CHARACTERS_OF_BACKFILL = 30_000
"""A step is over with the row that exceeds this: a long text costs what many short ones do."""
REMOVALS_OF_STEP = 256
MERGE_PAGES = 16
FEW_STEPS = 4
"""Each step leaves a segment; fewer are not worth a merge while nothing else is to be done."""
PAGE_BYTES = 4000
LEVELS = 5
"""Each page that is written is merged about so many times before it rests."""

CHANGES = """
    SELECT c.id, c.kind, c.lineage_no, c.message_id, m.timestamp, m.hidden, m.role, {columns}
    FROM changes AS c LEFT JOIN messages AS m ON m.id = c.message_id
    WHERE c.id > ? ORDER BY c.id LIMIT ?
"""
OLDER = """
    SELECT m.id, m.lineage_no, m.timestamp, m.role, {columns} FROM messages AS m
    WHERE m.id <= ? AND m.hidden = 0 ORDER BY m.id DESC LIMIT ?
"""
NEWEST_CHANGE = "SELECT coalesce(max(id), 0) FROM changes"


def waiting(reader: SqliteReader, watermark: int) -> int:
    """Return how many changes stand behind a watermark; those before it may be gone."""
    return max(0, number(reader, NEWEST_CHANGE) - watermark)


class Indexer:
    """Brings one index up to date. Thread-safe: several at once cost work, never rows.

    :param access: the store's tables.
    """

    def __init__(self, access: SqliteAccess) -> None:
        self._access = access
        columns = ", ".join(f"m.{name}" for name in access.searched_columns)
        self._changes = CHANGES.format(columns=columns)
        self._older = OLDER.format(columns=columns)
        self._debt = 0.0
        self._steps = 0

    def open(self) -> int:
        """Make or migrate the tables; return the version that was found, 0 for none.

        :raises StoreRefused: the index is of a newer version.
        """
        return self._access.migrate(NAME, STEPS)

    def left(self) -> int:
        """Return how many changes and old rows are not in the index yet."""
        watermark = self._access.watermark(NAME)
        with self._access.read() as reader:
            return waiting(reader, watermark) + state(reader, "backfill")

    def catch_up(self, budget_s: float) -> int:
        """Take steps for about ``budget_s`` seconds; return what is left, as :meth:`left` does. New rows come first."""
        until = time.monotonic() + budget_s
        while time.monotonic() < until and (self.take_changes() or self.take_older()):
            self._merge(until)
        left = self.left()
        if not left and self._steps >= FEW_STEPS:
            while time.monotonic() < until:
                if not self.merge(MERGE_PAGES):
                    self._steps = 0
                    break
        return left

    def take_changes(self) -> bool:
        """Take one step of the feed; say whether there was anything."""
        watermark = self._access.watermark(NAME)
        with self._access.read() as reader:
            rows = _fitting(reader.all(self._changes, (watermark, ROWS_OF_STEP)), 7, CHARACTERS_OF_STEP)
            latest = state(reader, "latest")
            removed = [found for row in rows if row[1] == "delete-lineage" for found in rows_of_lineage(reader, row[2])]
        if not rows:
            return False
        documents = {cast("int", row[3]): self._document(row[3], row[2], row[5], row[6:]) for row in rows if row[3]}
        removed += [message_id for message_id, made in documents.items() if made is None]
        while len(removed) > REMOVALS_OF_STEP:
            part, removed = removed[:REMOVALS_OF_STEP], removed[REMOVALS_OF_STEP:]
            if not self._access.advance(NAME, removing(part), expected=watermark, watermark=watermark):
                return True
        made = [each for each in documents.values() if each is not None]
        times = feed_times([row[4] for row in rows if isinstance(row[4], int)], latest)
        replaced = len({row[3] for row in rows if row[3] and row[1] != "insert"})
        work = writing(made, removed, times, replaced=replaced)
        self._advance(work, made, watermark, cast("int", rows[-1][0]))
        return True

    def take_older(self) -> bool:
        """Take one step of what was there before the index, newest first; say whether there was anything."""
        watermark = self._access.watermark(NAME)
        with self._access.read() as reader:
            begin = state(reader, "backfill")
            if not begin:
                return False
            rows = _fitting(reader.all(self._older, (begin, ROWS_OF_BACKFILL)), 4, CHARACTERS_OF_BACKFILL)
            earliest = state(reader, "earliest", default=1 << 62)
        # FTS5 writes a segment for each step backwards, so within a step the rows go up.
        found = [self._document(row[0], row[1], 0, row[3:]) for row in reversed(rows)]
        made = [each for each in found if each is not None]
        times = backfill_times([cast("int", row[2]) for row in rows], earliest)
        end = cast("int", rows[-1][0]) - 1 if rows else 0
        # The watermark stays and must not have moved: a row that was hidden meanwhile would come back.
        self._advance(filling(made, times, begin=begin, end=end), made, watermark, watermark)
        return True

    def _document(
        self, message_id: SqliteValue, lineage_no: SqliteValue, hidden: SqliteValue, cells: Cells
    ) -> Document | None:
        role, *searched = cells
        if role is None or hidden:
            return None
        text = self._access.searched_text(searched)
        return document(cast("int", message_id), cast("int", lineage_no), str(role), text)

    def _advance(
        self, work: Callable[[SqliteWriter], None], made: Sequence[Document], expected: int, watermark: int
    ) -> None:
        self._access.advance(NAME, work, expected=expected, watermark=watermark)
        self._steps += 1
        self._debt += 1 + sum(len(each.text) + len(each.marks) for each in made) / 2 / PAGE_BYTES * LEVELS

    def _merge(self, until: float) -> None:
        """Merge what the last steps have left to merge, in steps of a few milliseconds."""
        while self._debt >= MERGE_PAGES and time.monotonic() < until:
            self._debt -= MERGE_PAGES
            self.merge(MERGE_PAGES)

    def merge(self, pages: int) -> bool:
        """Merge about so many pages of each table; say whether there is more. Negative: of all levels at once."""
        merged = [self._access.apply(merging(statement, pages)) for statement in MERGES]
        return any(merged)


def _fitting(rows: list[Cells], text_at: int, most: int) -> list[Cells]:
    """As many of the first rows as make a step: at least one."""
    characters = 0
    for count, row in enumerate(rows, 1):
        characters += len(cast("str", row[text_at] or ""))
        if characters > most:
            return rows[:count]
    return rows
