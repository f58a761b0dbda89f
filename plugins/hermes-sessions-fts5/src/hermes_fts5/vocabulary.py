"""The distinct words of the index, and which of them hold a part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_fts5.health import Damaged
from hermes_hookspecs.text.segments import term_trigrams

if TYPE_CHECKING:
    from hermes_hookspecs.ports.sqlite import SqliteReader
    from hermes_hookspecs.text.needles import QueryToken

__all__ = ["Vocabulary"]

# The full-text table leads, so that a word that is found and not listed shows.
TERMS = """
    SELECT term FROM (SELECT rowid AS found FROM messages_fts_trigram WHERE messages_fts_trigram MATCH ? LIMIT ?)
    LEFT JOIN fts5_terms ON id = found
"""
COUNT = "SELECT count(*) FROM (SELECT 1 FROM fts5_marks WHERE fts5_marks MATCH ? LIMIT ?)"
RARE = 2000
MANY = 200
"""So many words at once are looked up; FTS5 takes time for each of them at each row."""


class Vocabulary:
    """Words of one state of the index.

    :param reader: of one read transaction; the object lives no longer than that.
    """

    def __init__(self, reader: SqliteReader) -> None:
        self._reader = reader
        self._rare: dict[str, bool] = {}

    def holding(self, token: QueryToken) -> list[str] | None:
        """Return the words that a part of a word may belong to, ``None`` where they are too many to be looked up.

        :raises Damaged: the list of words is not the one that its trigrams were made of.
        """
        grams = term_trigrams(token.text)
        if not grams:
            return [token.text]
        wanted = " AND ".join(f'"{gram}"' for gram in grams)
        terms = [str(term or "") for (term,) in self._reader.all(TERMS, (wanted, 10 * MANY))]
        if not all(gram in term for term in terms for gram in grams):
            raise Damaged("the list of words and their trigrams disagree")
        accepted = sorted(term for term in terms if token.accepts(term))
        return None if len(accepted) > MANY or len(terms) == 10 * MANY else accepted

    def is_rare(self, character: str) -> bool:
        """Return whether few rows hold a single character."""
        if character not in self._rare:
            found = self._reader.one(COUNT, (f'"{character}"', RARE + 1))
            self._rare[character] = found is not None and isinstance(found[0], int) and found[0] <= RARE
        return self._rare[character]
