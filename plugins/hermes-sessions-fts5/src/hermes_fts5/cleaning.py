"""Taking removed text out of the file for good.

What leaves the index is marked as removed there, and is not found any more; the words themselves stay in old segments
until those are merged, and in the vocabulary. Once enough was removed, or some of it and the last cleaning was a day
ago, everything is merged into one segment, step by step, and the words that no row holds any more are taken out of the
vocabulary.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

from hermes_fts5.documents import PARTS_FROM
from hermes_fts5.schema import NAME
from hermes_fts5.steps import number, setting, state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_fts5.indexer import Indexer
    from hermes_hookspecs.ports.sqlite import SqliteAccess, SqliteValue, SqliteWriter

__all__ = ["Cleaner"]

DAY_S = 86_400
ENOUGH = 20
"""Every so many-th row of the index: then cleaning does not wait for the day to be over."""
TERMS_OF_STEP = 200
ROWS = f"SELECT coalesce(max(id), 0) FROM messages_fts_docsize WHERE id < {PARTS_FROM}"  # noqa: S608 - a constant
UNUSED = """
    SELECT t.id, t.term, NOT EXISTS (SELECT 1 FROM fts5_vocabulary AS v WHERE v.term = t.term)
    FROM fts5_terms AS t WHERE t.id > ? ORDER BY t.id LIMIT ?
"""
# What is given to 'delete' is what was put in: a term never changes.
FORGET_TRIGRAMS = "INSERT INTO messages_fts_trigram (messages_fts_trigram, rowid, term) VALUES ('delete', ?, ?)"
FORGET = "DELETE FROM fts5_terms WHERE id = ?"
IDLE, MERGING, SWEEPING = 0, 1, 2


class Cleaner:
    """Cleans one index in small steps; where it is, is remembered in the index itself.

    :param clock: seconds since the epoch.
    """

    def __init__(self, access: SqliteAccess, indexer: Indexer, *, clock: Callable[[], float] = time.time) -> None:
        self._access = access
        self._indexer = indexer
        self._clock = clock

    def clean(self, until: float, *, at_once: bool = False) -> bool:
        """Clean until ``until`` (``time.monotonic`` seconds), if it is due; say whether there is more to do.

        To be called while nothing waits to be indexed.

        :param at_once: begin, however little was removed.
        """
        with self._access.read() as reader:
            phase, removed = state(reader, "cleaning"), state(reader, "removed")
            due = at_once or removed * ENOUGH >= number(reader, ROWS) or self._is_old(state(reader, "cleaned_at"))
        if phase == IDLE:
            if not removed or not due:
                return False
            self._access.apply(_all_of(setting("cleaning", MERGING), setting("removed", 0), setting("swept", 0)))
            self._indexer.merge(all_levels=True)
            phase = MERGING
        while phase != IDLE and time.monotonic() < until:
            phase = self._step(phase)
        return phase != IDLE

    def _is_old(self, cleaned_at: int) -> bool:
        return self._clock() - cleaned_at >= DAY_S

    def _step(self, phase: int) -> int:
        """Do one step and return the phase behind it."""
        if phase == MERGING:
            if not self._indexer.merge():
                self._access.apply(setting("cleaning", SWEEPING))
                return SWEEPING
            return MERGING
        return self._sweep()

    def _sweep(self) -> int:
        watermark = self._access.watermark(NAME)
        with self._access.read() as reader:
            swept = state(reader, "swept")
            rows = reader.all(UNUSED, (swept, TERMS_OF_STEP))
        if not rows:
            now = int(self._clock())
            self._access.apply(_all_of(setting("cleaning", IDLE), setting("cleaned_at", now)))
            return IDLE
        unused = [(row[0], row[1]) for row in rows if row[2]]
        work = _forgetting(unused, swept, cast("int", rows[-1][0]))
        # A row that was indexed meanwhile may hold one of these words: then the step is prepared anew.
        self._access.advance(NAME, work, expected=watermark, watermark=watermark)
        return SWEEPING


def _all_of(*works: Callable[[SqliteWriter], None]) -> Callable[[SqliteWriter], None]:
    def work(writer: SqliteWriter) -> None:
        for each in works:
            each(writer)

    return work


def _forgetting(
    unused: Sequence[tuple[SqliteValue, SqliteValue]], begin: int, end: int
) -> Callable[[SqliteWriter], None]:
    ids = [(term_id,) for term_id, _ in unused]

    def work(writer: SqliteWriter) -> None:
        # Somebody else may have taken the same step.
        if state(writer, "swept") == begin and state(writer, "backfill") == 0:
            writer.run_many(FORGET_TRIGRAMS, unused)
            writer.run_many(FORGET, ids)
            setting("swept", end)(writer)

    return work
