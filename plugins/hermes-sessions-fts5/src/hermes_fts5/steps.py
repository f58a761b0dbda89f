"""What one step writes: pure functions of what was prepared before the transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_fts5.documents import PARTS_FROM, place_of
from hermes_fts5.schema import TUNED_TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_fts5.documents import Document
    from hermes_hookspecs.ports.sqlite import SqliteReader, SqliteValue, SqliteWriter

    Times = tuple[int, int, int]

__all__ = [
    "MERGES",
    "backfill_times",
    "feed_times",
    "filling",
    "merging",
    "number",
    "removing",
    "setting",
    "state",
    "writing",
]

OF_LINEAGE = "SELECT rowid FROM messages_fts WHERE messages_fts MATCH ?"
STATE = "SELECT value FROM fts5_state WHERE name = ?"
SET_STATE = "INSERT INTO fts5_state VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value"
REMOVE = ("DELETE FROM messages_fts WHERE rowid = ?", "DELETE FROM fts5_marks WHERE rowid = ?")
COUNT_REMOVED = "UPDATE fts5_state SET value = value + ? WHERE name = 'removed'"
PUT_TEXT = "INSERT OR REPLACE INTO messages_fts (rowid, text, place) VALUES (?, ?, ?)"
PUT_MARKS = "INSERT OR REPLACE INTO fts5_marks (rowid, marks) VALUES (?, ?)"
PUT_TERM = "INSERT OR IGNORE INTO fts5_terms (term) VALUES (?)"
NEWEST_TERM = "SELECT coalesce(max(id), 0) FROM fts5_terms"
PUT_TRIGRAMS = "INSERT INTO messages_fts_trigram (rowid, term) SELECT id, term FROM fts5_terms WHERE id > ?"
NOTE_TIMES = """
    INSERT INTO fts5_state VALUES ('latest', ?1), ('earliest', ?2), ('disorder', ?3)
    ON CONFLICT DO UPDATE SET value = iif(name = 'earliest', min(value, excluded.value), max(value, excluded.value))
"""
MERGES = tuple(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)" for table in TUNED_TABLES)  # noqa: S608 - constants
TOTAL_CHANGES = "SELECT total_changes()"


def number(reader: SqliteReader, sql: str, bindings: Sequence[int | str] = (), default: int = 0) -> int:
    """Return the one integer that a statement answers, ``default`` where it answers none."""
    found = reader.one(sql, bindings)
    return found[0] if found is not None and isinstance(found[0], int) else default


def state(reader: SqliteReader, name: str, default: int = 0) -> int:
    """Return a number that the index remembers."""
    return number(reader, STATE, (name,), default)


def rows_of_lineage(reader: SqliteReader, lineage_no: SqliteValue) -> list[int]:
    """Return the ids of the rows that the index holds of a lineage, which may be gone from the store."""
    rows = reader.all(OF_LINEAGE, (f'place : "{place_of(cast("int", lineage_no))}"',))
    return [cast("int", row[0]) for row in rows]  # rowids


def setting(name: str, value: int) -> Callable[[SqliteWriter], None]:
    """Return what lets the index remember a number."""

    def work(writer: SqliteWriter) -> None:
        writer.run(SET_STATE, (name, value))

    return work


def feed_times(times: Sequence[int], latest: int) -> Times | None:
    """Return the latest and the earliest time of rows in order of storing, and their disorder.

    That is how far, at most, a row is dated before one that was stored earlier. An answer in order of time can stop
    reading in order of storing once it is that far behind what it has.

    :param latest: of all rows before.
    """
    disorder = 0
    for at in times:
        disorder = max(disorder, latest - at)
        latest = max(latest, at)
    return (max(times), min(times), disorder) if times else None


def backfill_times(times: Sequence[int], earliest: int) -> Times | None:
    """Return the same of rows in the opposite order; ``earliest`` is of all rows behind them."""
    disorder = 0
    for at in times:
        disorder = max(disorder, at - earliest)
        earliest = min(earliest, at)
    return (max(times), min(times), disorder) if times else None


def removing(ids: Sequence[int]) -> Callable[[SqliteWriter], None]:
    """Return what takes rows out of the index; those that are not in it do no harm."""
    rows = [(each,) for each in ids]

    def work(writer: SqliteWriter) -> None:
        for statement in REMOVE:
            writer.run_many(statement, rows)
        writer.run(COUNT_REMOVED, (len(rows),))

    return work


def writing(
    documents: Sequence[Document], removed: Sequence[int], times: Times | None, *, replaced: int = 0
) -> Callable[[SqliteWriter], None]:
    """Return what takes rows out, puts others in, and remembers their times.

    :param replaced: how many of the documents may be there already, with another text.
    """
    texts = [(each.id, each.text, each.place) for each in documents]
    # Further parts have none; with an empty row, what a changed text was marked with is gone.
    marks = [(each.id, each.marks) for each in documents if each.id < PARTS_FROM]
    terms = [(term,) for term in sorted(set().union(*(each.terms for each in documents)))]
    remove = removing(removed) if removed else None

    def work(writer: SqliteWriter) -> None:
        if remove is not None:
            remove(writer)
        if texts:
            writer.run_many(PUT_TEXT, texts)
            writer.run_many(PUT_MARKS, marks)
            newest = number(writer, NEWEST_TERM)
            writer.run_many(PUT_TERM, terms)
            writer.run(PUT_TRIGRAMS, (newest,))
        if replaced:
            writer.run(COUNT_REMOVED, (replaced,))
        if times is not None:
            writer.run(NOTE_TIMES, times)

    return work


def filling(
    documents: Sequence[Document], times: Times | None, *, begin: int, end: int
) -> Callable[[SqliteWriter], None]:
    """Return what puts old rows in and moves the mark of the backfill from ``begin`` to ``end``, if it stands there."""
    fill = writing(documents, (), times)

    def work(writer: SqliteWriter) -> None:
        # Somebody else may have been quicker: his rows are there, and the mark is lower.
        if state(writer, "backfill") == begin:
            fill(writer)
            writer.run(SET_STATE, ("backfill", end))

    return work


def merging(statement: str, pages: int) -> Callable[[SqliteWriter], bool]:
    """Return what merges about so many pages of one table and says whether there is more."""

    def work(writer: SqliteWriter) -> bool:
        before = number(writer, TOTAL_CHANGES)
        writer.run(statement, (pages,))
        # FTS5's own rule: fewer than two changes mean that there was nothing to merge.
        return number(writer, TOTAL_CHANGES) - before >= 2

    return work
