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

    def add(self, row: LiveRow, score: float) -> None:
        """Take a row if it is the best of its lineage so far."""
        if self._sort == NEWEST:
            place = (float(row.timestamp), int(row.id))
        elif self._sort == OLDEST:
            place = (float(-row.timestamp), -int(row.id))
        else:
            place = (score, int(row.id))
        known = self._rows.get(row.lineage_id)
        if known is None or place > known[0]:
            self._rows[row.lineage_id] = (place, score, row)

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
