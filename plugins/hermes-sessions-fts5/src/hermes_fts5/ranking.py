"""The best row of each lineage, and when it is known that no better one can come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ports.search import NEWEST, OLDEST
from hermes_hookspecs.text.query import And, Not, Or

if TYPE_CHECKING:
    from hermes_fts5.rows import LiveRow
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.text.query import Node

__all__ = ["Best", "holds_whole", "part_score", "whole_score"]


def whole_score(score: float) -> float:
    """Return the score of a row that holds what was typed as whole words: above 1."""
    return 1.0 + score


def part_score(score: float) -> float:
    """Return the score of a row that holds a word only as a part of others: below 1, behind all whole ones."""
    return score / (1.0 + score)


def holds_whole(query: Node, folded: str) -> bool:
    """Return whether a text that matches a query also does so with whole words only."""
    if isinstance(query, And):
        return all(holds_whole(part, folded) for part in query.parts)
    if isinstance(query, Or):
        return any(holds_whole(part, folded) for part in query.parts)
    if isinstance(query, Not):
        return True
    needle = query.needle
    return any(needle.is_whole(folded, span) for span in needle.spans(folded))


class Best:
    """Keeps the best row of each lineage.

    :param sort: of the query. limit: how many lineages are wanted.
    """

    def __init__(self, sort: str, limit: int) -> None:
        self._sort = sort
        self._limit = limit
        self._rows: dict[LineageId, tuple[tuple[float, int], float, LiveRow]] = {}
        self.titles: dict[LineageId, str] = {}
        """Titles of the lineages that are here by their titles only."""

    def add(self, row: LiveRow, score: float) -> None:
        """Take a row if it is the best of its lineage so far."""
        place = self._place(row, score)
        known = self._rows.get(row.lineage_id)
        if known is None or place > known[0]:
            self._rows[row.lineage_id] = (place, score, row)

    def _place(self, row: LiveRow, score: float) -> tuple[float, int]:
        if self._sort == NEWEST:
            return (float(row.timestamp), int(row.id))
        if self._sort == OLDEST:
            return (float(-row.timestamp), -int(row.id))
        return (score, int(row.id))

    def merge(self, other: Best) -> None:
        """Take the rows of another answer to the same query."""
        for _, score, row in other._rows.values():
            self.add(row, score)

    def has_row(self, lineage_id: LineageId) -> bool:
        """Return whether a lineage has a row here."""
        return lineage_id in self._rows

    def lift(self, lineage_id: LineageId, score: float, *, whole: bool) -> None:
        """Add what the title of a lineage is worth to its row.

        :param whole: the title matches with whole words. One that does not never lifts a row that does.
        """
        _, known, row = self._rows[lineage_id]
        lifted = whole_score(score) + max(0.0, known - 1.0) if whole else max(known, part_score(score))
        self._rows[lineage_id] = (self._place(row, lifted), lifted, row)

    def add_titled(self, row: LiveRow, title: str, score: float) -> None:
        """Take the row that stands for a lineage of which only the title matches."""
        self._rows[row.lineage_id] = (self._place(row, score), score, row)
        self.titles[row.lineage_id] = title

    def has_better(self, lineage_id: str, score: float) -> bool:
        """Return whether a lineage has a row with a better score already."""
        known = self._rows.get(lineage_id)  # type: ignore[call-overload]  # a LineageId is text
        return known is not None and bool(known[1] > score)

    def is_settled(self, possible: float) -> bool:
        """Return whether no row that is worth at most ``possible`` could change the answer.

        Worth is the score, or the time, negative for ``oldest``.
        """
        if self._limit <= 0:
            return True
        if len(self._rows) < self._limit:
            return False
        return self._places()[self._limit - 1][0] > possible

    def _places(self) -> list[tuple[float, int]]:
        return sorted((place for place, _, _ in self._rows.values()), reverse=True)

    def rows(self) -> list[tuple[float, LiveRow]]:
        """Return ``(score, row)``, best first, as many as are wanted."""
        ordered = sorted(self._rows.values(), key=lambda one: one[0], reverse=True)
        return [(score, row) for _, score, row in ordered[: max(self._limit, 0)]]
