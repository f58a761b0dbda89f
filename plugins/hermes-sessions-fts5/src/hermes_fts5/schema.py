"""Tables of the index, and the statements that fill them.

``messages_fts`` holds words and CJK pairs in the order of the text (phrases, bm25), and in its column ``place`` the
lineage, so that access is part of the look-up. ``fts5_marks`` holds, without positions, every single CJK character
(a pair that begins with it would be looked up by prefix, which reads all such pairs), each sign between words and each
two of them that touch and, with an ``s`` before it, each token of which a text is full: the rows that score best
wherever they stand. ``fts5_terms`` are the distinct words, ``messages_fts_trigram`` their trigrams: a part of a word is
looked up among words, not among rows.

The three full-text tables keep no text. Rows leave the first two by their id alone, and a term is never changed, so
what is taken out is always what was put in.
"""

from __future__ import annotations

__all__ = ["NAME", "STEPS", "TUNED_TABLES"]

NAME = "fts5"
"""The plugin's name, which begins its tables' names."""

TUNED_TABLES = ("messages_fts", "fts5_marks", "messages_fts_trigram")

# Merging is the janitor's business, in steps of a known size: left to itself, FTS5 merges inside somebody's step.
_TUNING = "".join(
    f"""
    INSERT INTO {table} ({table}, rank) VALUES ('automerge', 0);
    INSERT INTO {table} ({table}, rank) VALUES ('crisismerge', 200);
    """  # noqa: S608 - names of constants
    for table in TUNED_TABLES
)

_FIRST = f"""
CREATE VIRTUAL TABLE messages_fts USING fts5 (text, place, content = '', contentless_delete = 1, tokenize = 'ascii');
INSERT INTO messages_fts (messages_fts, rank) VALUES ('rank', 'bm25(1.0, 0.0)');
CREATE VIRTUAL TABLE fts5_marks USING fts5 (
    marks, content = '', contentless_delete = 1, detail = 'none', tokenize = 'ascii'
);
CREATE TABLE fts5_terms (id INTEGER PRIMARY KEY, term TEXT NOT NULL UNIQUE) STRICT;
CREATE VIRTUAL TABLE messages_fts_trigram USING fts5 (
    term, content = 'fts5_terms', content_rowid = 'id', detail = 'none', columnsize = 0,
    tokenize = 'trigram case_sensitive 1'
);
CREATE VIRTUAL TABLE fts5_vocabulary USING fts5vocab (messages_fts, row);
{_TUNING}
-- backfill: highest id of a message that was there before the index and is not in it yet, 0 when all are.
-- backfill_top: where that began. removed: rows taken out since the index was last
-- cleaned. cleaning, swept, cleaned_at: see the module of that name. damaged: 1 or 0.
CREATE TABLE fts5_state (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO fts5_state SELECT 'backfill', coalesce(max(id), 0) FROM messages;
INSERT INTO fts5_state SELECT 'backfill_top', coalesce(max(id), 0) FROM messages;
INSERT INTO fts5_state VALUES ('damaged', 0), ('removed', 0), ('cleaned_at', unixepoch());
"""  # noqa: S608 - the names of constants

# Signs were not marked before: every row is taken in anew, and read one by one until it is.
_SIGNS = """
UPDATE fts5_state SET value = (SELECT coalesce(max(id), 0) FROM messages) WHERE name IN ('backfill', 'backfill_top');
UPDATE fts5_state SET value = (SELECT count(*) FROM messages_fts_docsize) WHERE name = 'removed';
"""

STEPS = (_FIRST, _SIGNS)
"""Migrations of the plugin's tables, the first makes version 1."""
