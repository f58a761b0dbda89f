"""Whether the index can be trusted: the look before a search, and the whole examination."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

from hermes_fts5.documents import PARTS_FROM, document, message_of, place_of
from hermes_fts5.schema import NAME, TUNED_TABLES
from hermes_fts5.steps import number, rows_of_lineage, state
from hermes_hookspecs.errors import (
    StorageError,
    StoreBusy,
    StoreDamaged,
    StoreFull,
    StoreOutcomeUnknown,
    StoreRefused,
    StoreStopped,
)
from hermes_hookspecs.ports.care import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_fts5.documents import Document
    from hermes_hookspecs.ports.sqlite import SqliteAccess, SqliteReader, SqliteWriter

__all__ = ["Damaged", "examine", "guarding", "is_being_dropped", "probe"]

LAST = f"SELECT max(id) FROM messages_fts_docsize WHERE id < {PARTS_FROM}"  # noqa: S608 - a constant
PLACE = "SELECT lineage_no FROM messages WHERE id = ?"
FOUND = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ? AND rowid = ?"
# What has no length cannot be taken out any more.
HAS_LENGTHS = f"""
    SELECT EXISTS (SELECT 1 FROM messages_fts_docsize WHERE id = ?1)
        AND (?1 >= {PARTS_FROM} OR EXISTS (SELECT 1 FROM fts5_marks_docsize WHERE id = ?1))
"""  # noqa: S608 - a constant
MARKED = "SELECT 1 FROM fts5_marks WHERE fts5_marks MATCH ? AND rowid = ?"
# With rank 1 trigrams are compared with the words that they are of; tables without content take it as 0.
INTEGRITY = tuple(
    f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)"  # noqa: S608 - constants
    for table in TUNED_TABLES
)
# Dropping takes the tables out of sight before what they kept their data in.
HALF_GONE = f"""
    SELECT count(*) FILTER (WHERE name IN {TUNED_TABLES}) < {len(TUNED_TABLES)}
        AND count(*) FILTER (WHERE name GLOB 'dropped_*' OR name GLOB 'messages_fts_*' OR name GLOB 'fts5_*') > 0
    FROM sqlite_schema WHERE type = 'table'
"""  # noqa: S608 - constants
TERM = "SELECT 1 FROM fts5_terms WHERE term = ?"
CHANGES_EVER = "SELECT seq FROM sqlite_sequence WHERE name = 'changes'"
PAGE = 500
SHOULD_BE = """
    SELECT m.id, m.lineage_no, m.role, {columns} FROM messages AS m
    WHERE m.id > ? AND m.hidden = 0 ORDER BY m.id LIMIT ?
"""
STALE = f"""
    SELECT DISTINCT m.id FROM messages AS m JOIN messages_fts_docsize AS d ON m.id = d.id % {PARTS_FROM}
    WHERE m.hidden <> 0
    UNION SELECT DISTINCT d.id % {PARTS_FROM} FROM messages_fts_docsize AS d
    WHERE NOT EXISTS (SELECT 1 FROM messages AS m WHERE m.id = d.id % {PARTS_FROM})
"""  # noqa: S608 - a constant
CHANGED = "SELECT DISTINCT message_id FROM changes WHERE id > ? AND message_id IS NOT NULL"
GONE = "SELECT lineage_no FROM changes WHERE id > ? AND kind = 'delete-lineage'"


class Damaged(StoreDamaged):
    """The tables of the index do not answer as they should; the store itself is not concerned."""


@contextmanager
def guarding() -> Iterator[None]:
    """Turn faults of the index's tables into :class:`Damaged`; what concerns the whole store passes.

    :raises Damaged: see above.
    """
    try:
        yield
    except (Damaged, StoreBusy, StoreFull, StoreOutcomeUnknown, StoreRefused, StoreStopped):
        raise
    except StorageError as error:
        raise Damaged(f"the search index does not work ({error})") from error


def is_being_dropped(reader: SqliteReader) -> bool:
    """Return whether the tables are half gone: somebody drops them, or died over it."""
    return number(reader, HALF_GONE) > 0


def probe(reader: SqliteReader, watermark: int) -> bool:
    """Return whether the index knows how far it is, and finds the last row that it holds.

    An emptied index says nothing of itself. True where the row is gone from the store, or nothing is indexed: only a
    fault is one.
    """
    # What it has forgotten, or claims to know ahead of time, would be rows that are never read.
    if state(reader, "backfill", default=-1) < 0 or watermark > number(reader, CHANGES_EVER):
        return False
    last = number(reader, LAST)
    lineage_no = number(reader, PLACE, (last,))
    if not last or not lineage_no:
        return True
    return reader.one(FOUND, (f'place : "l{lineage_no}"', last)) is not None


def examine(access: SqliteAccess) -> Sequence[Finding]:
    """Return what is wrong with an index; reads all of it and every row of the store."""
    if not access.version(NAME):
        return ()
    try:
        with guarding():
            for statement in INTEGRITY:
                access.apply(_running(statement))
            with access.read() as reader:
                return _compare(access, reader)
    except Damaged as damage:
        text = f"the search index is damaged, messages are not: {damage}; `hermes search index rebuild` makes it anew"
        return (Finding(kind="search-index", subject=NAME, text=text, fixable=True, severity="error"),)


def _running(statement: str) -> Callable[[SqliteWriter], int]:
    return lambda writer: writer.run(statement)


def _is_found(reader: SqliteReader, part: Document, place: str) -> bool:
    word, mark = (tokens.split(" ", 1)[0] for tokens in (part.text, part.marks))
    sought = f'text : "{word}" AND place : "{place}"' if word else f'place : "{place}"'
    if reader.one(FOUND, (sought, part.id)) is None or not number(reader, HAS_LENGTHS, (part.id,)):
        return False
    return not mark or reader.one(MARKED, (f'"{mark}"', part.id)) is not None


def _compare(access: SqliteAccess, reader: SqliteReader) -> Sequence[Finding]:
    """Rows that should be in the index and are not, and the other way round, as far as it claims to be up to date."""
    watermark = access.watermark(NAME)
    waiting = {cast("int", row[0]) for row in reader.all(CHANGED, (watermark,))}
    for (lineage_no,) in reader.all(GONE, (watermark,)):
        waiting.update(map(message_of, rows_of_lineage(reader, lineage_no)))
    above = state(reader, "backfill")
    is_known = not state(reader, "damaged") and probe(reader, watermark)
    sql = SHOULD_BE.format(columns=", ".join(f"m.{name}" for name in access.searched_columns))
    missing = 0
    unlisted: set[str] = set()
    while rows := reader.all(sql, (above, PAGE)):
        for row in rows:
            message_id, lineage_no = cast("int", row[0]), cast("int", row[1])
            text = "" if message_id in waiting else access.searched_text(row[3:])
            made = document(message_id, lineage_no, str(row[2]), text)
            if made is not None:
                place = place_of(lineage_no)
                parts = (made, *made.rest)
                missing += not all(_is_found(reader, part, place) for part in parts)
                unlisted.update(term for part in parts for term in part.terms if reader.one(TERM, (term,)) is None)
        above = cast("int", rows[-1][0])
    stale = sum(row[0] not in waiting for row in reader.all(STALE))
    faults = (
        (not is_known, "the search index is marked as damaged, or does not know how far it is, and is to be made anew"),
        (missing, f"{_counted(missing, 'row')} not found through the search index"),
        (stale, f"{_counted(stale, 'row')} in the search index and gone or hidden"),
        (len(unlisted), f"{_counted(len(unlisted), 'word')} missing where parts of words are looked up"),
    )
    return [
        Finding(
            kind="search-index",
            subject=NAME,
            text=f"{text}; `hermes search index rebuild` puts it right",
            fixable=True,
            severity="error",
        )
        for is_there, text in faults
        if is_there
    ]


def _counted(count: int, noun: str) -> str:
    return f"1 {noun} is" if count == 1 else f"{count} {noun}s are"
