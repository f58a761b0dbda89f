"""Filling the index: what the change feed brought, and what was there before the index.

Each step reads and prepares outside the transaction, then writes rows and watermark in one: a process that dies leaves
whole steps only, and of two that prepared the same step the second finds the watermark moved and writes nothing. What a
change says does not matter, only what is there now: a row that is stored and not hidden is put in as it stands, any
other is taken out. So a step may be repeated.
"""

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, cast

from hermes_fts5.documents import document
from hermes_fts5.longs import parts_of
from hermes_fts5.pacing import Pace
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

ROWS_OF_STEP = 96
"""Most rows of a step; how many bytes of text it takes follows from how long steps take here."""
FIRST_BYTES, LEAST_BYTES, MOST_BYTES = 12_000, 3_000, 48_000
REMOVALS_OF_STEP = 256
FIRST_PAGES, LEAST_PAGES, MOST_PAGES = 16, 4, 64
FEW_STEPS = 4
"""Each step leaves a segment; fewer are not worth a merge while nothing else is to be done."""
PAGE_BYTES = 4000
LEVELS = 5
"""Each page that is written is merged about so many times before it rests."""

# The lengths first: of many long texts none is read before its step.
CHANGES_SIZES = """
    SELECT {sizes} FROM changes AS c LEFT JOIN messages AS m ON m.id = c.message_id
    WHERE c.id > ? ORDER BY c.id LIMIT ?
"""
CHANGES = """
    SELECT c.id, c.kind, c.lineage_no, c.message_id, m.timestamp, m.hidden, m.role, {columns}
    FROM changes AS c LEFT JOIN messages AS m ON m.id = c.message_id
    WHERE c.id > ? ORDER BY c.id LIMIT ?
"""
OLDER_SIZES = """
    SELECT {sizes} FROM messages AS m WHERE m.id <= ? AND m.hidden = 0 ORDER BY m.id DESC LIMIT ?
"""
OLDER = """
    SELECT m.id, m.lineage_no, m.timestamp, m.role, {columns} FROM messages AS m
    WHERE m.id <= ? AND m.hidden = 0 ORDER BY m.id DESC LIMIT ?
"""
NEWEST_CHANGE = "SELECT coalesce(max(id), 0) FROM changes"


def waiting(reader: SqliteReader, watermark: int) -> int:
    """Return how many changes stand behind a watermark; those before it may be gone."""
    return max(0, number(reader, NEWEST_CHANGE) - watermark)


def _begins_longer(sizes: Sequence[Cells], most_bytes: float) -> bool:
    return bool(sizes) and cast("int", sizes[0][0]) > most_bytes


class Indexer:
    """Brings one index up to date. Thread-safe: several at once cost work, never rows.

    :param access: the store's tables.
    """

    def __init__(self, access: SqliteAccess) -> None:
        self._access = access
        columns = ", ".join(f"m.{name}" for name in access.searched_columns)
        sizes = " + ".join(f"coalesce(octet_length(m.{name}), 0)" for name in access.searched_columns)
        self._changes, self._changes_sizes = CHANGES.format(columns=columns), CHANGES_SIZES.format(sizes=sizes)
        self._older, self._older_sizes = OLDER.format(columns=columns), OLDER_SIZES.format(sizes=sizes)
        self._bytes = Pace(FIRST_BYTES, least=LEAST_BYTES, most=MOST_BYTES)
        self._pages = Pace(FIRST_PAGES, least=LEAST_PAGES, most=MOST_PAGES)
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

    def catch_up(self, budget_s: float, *, most_bytes: float = inf) -> int:
        """Take steps for about ``budget_s`` seconds; return what is left, as :meth:`left` does. New rows come first.

        :param most_bytes: of one row; a longer one, whose parts go in one after the other, is left to others.
        """
        until = time.monotonic() + budget_s
        while time.monotonic() < until and (self.take_changes(most_bytes) or self.take_older(most_bytes)):
            self._merge(until)
        left = self.left()
        if not left and self._steps >= FEW_STEPS:
            while time.monotonic() < until:
                if not self.merge():
                    self._steps = 0
                    break
        return left

    def take_changes(self, most_bytes: float = inf) -> bool:
        """Take one step of the feed; say whether there was anything, of up to ``most_bytes`` a row."""
        watermark = self._access.watermark(NAME)
        with self._access.read() as reader:
            sizes = reader.all(self._changes_sizes, (watermark, ROWS_OF_STEP))
            if _begins_longer(sizes, most_bytes):
                return False
            count = self._fitting(sizes)
            rows = reader.all(self._changes, (watermark, count))
            latest = state(reader, "latest")
            removed = [found for row in rows if row[1] == "delete-lineage" for found in rows_of_lineage(reader, row[2])]
            documents = {cast("int", row[3]): self._document(row[3], row[2], row[5], row[6:]) for row in rows if row[3]}
            removed += [message_id for message_id, made in documents.items() if made is None]
            for message_id in {cast("int", row[3]) for row in rows if row[3] and row[1] != "insert"}:
                left = documents[message_id]
                removed += parts_of(reader, message_id, beyond=0 if left is None else len(left.rest))
        if not rows:
            return False
        while len(removed) > REMOVALS_OF_STEP:
            part, removed = removed[:REMOVALS_OF_STEP], removed[REMOVALS_OF_STEP:]
            if not self._access.advance(NAME, removing(part), expected=watermark, watermark=watermark):
                return True
        made = [each for each in documents.values() if each is not None]
        times = feed_times([row[4] for row in rows if isinstance(row[4], int)], latest)
        replaced = len({row[3] for row in rows if row[3] and row[1] != "insert"})
        if self._put_rest(made, watermark):
            work = writing(made, removed, times, replaced=replaced)
            self._advance(work, made, watermark, cast("int", rows[-1][0]))
        return True

    def take_older(self, most_bytes: float = inf) -> bool:
        """Take one step of what was there before the index, newest first; say whether there was anything, as above."""
        watermark = self._access.watermark(NAME)
        with self._access.read() as reader:
            begin = state(reader, "backfill")
            if not begin:
                return False
            sizes = reader.all(self._older_sizes, (begin, ROWS_OF_STEP))
            if _begins_longer(sizes, most_bytes):
                return False
            count = self._fitting(sizes)
            rows = reader.all(self._older, (begin, count))
            earliest = state(reader, "earliest", default=1 << 62)
        # FTS5 writes a segment for each step backwards, so within a step the rows go up.
        found = [self._document(row[0], row[1], 0, row[3:]) for row in reversed(rows)]
        made = [each for each in found if each is not None]
        times = backfill_times([cast("int", row[2]) for row in rows], earliest)
        end = cast("int", rows[-1][0]) - 1 if rows else 0
        # The watermark stays and must not have moved: a row that was hidden meanwhile would come back.
        if self._put_rest(made, watermark):
            self._advance(filling(made, times, begin=begin, end=end), made, watermark, watermark)
        return True

    def _put_rest(self, made: Sequence[Document], watermark: int) -> bool:
        """Put further parts of long rows in, each in a step of its own; false where somebody else was quicker.

        Until the step of the row itself is done, the row is looked at by every search, and these are of no use.
        """
        for part in (part for each in made for part in each.rest):
            if not self._advance(writing([part], (), None), [part], watermark, watermark):
                return False
            # Segments that pile up would be merged by FTS5 itself, all at once.
            self._merge()
        return True

    def _fitting(self, sizes: Sequence[Cells]) -> int:
        """As many of the first rows as make a step: at least one."""
        total = 0
        for count, (size,) in enumerate(sizes, 1):
            total += cast("int", size)
            if total > self._bytes.size:
                return max(1, count - 1)
        return len(sizes)

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
    ) -> bool:
        size = sum(len(each.text) + len(each.marks) for each in made)
        timed = self._bytes.timed(work, sum(len(each.text.encode()) for each in made)) if made else work
        is_done = self._access.advance(NAME, timed, expected=expected, watermark=watermark)
        self._steps += 1
        self._debt += 1 + size / 2 / PAGE_BYTES * LEVELS
        return is_done

    def _merge(self, until: float = inf) -> None:
        """Merge what the last steps have left to merge, in steps of a few milliseconds."""
        while self._debt >= self._pages.size and time.monotonic() < until:
            self._debt -= self._pages.size
            self.merge()

    def merge(self, *, all_levels: bool = False) -> bool:
        """Merge some pages of each table; say whether there is more.

        :param all_levels: bring all segments to one level first, so that the following calls end with one segment.
        """
        pages = -self._pages.size if all_levels else self._pages.size
        merged = [self._access.apply(self._pages.timed(merging(statement, pages), abs(pages))) for statement in MERGES]
        return any(merged)
