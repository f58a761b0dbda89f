"""Conversations whose titles match: looked up live, since there are few titles and they change at any time."""

# ruff: noqa: S608 - statements are put together from constants and the store's own condition; values are always bound

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, cast

from hermes_fts5.documents import impact
from hermes_fts5.ranking import holds_whole
from hermes_fts5.sieve import title_may_hold
from hermes_fts5.weighing import worth
from hermes_hookspecs.ports.search import NEWEST, OLDEST
from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.query import holds, leaves, required

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_fts5.finding import Finder
    from hermes_fts5.rows import LiveRows
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.search import SearchQuery
    from hermes_hookspecs.ports.sqlite import SqliteReader
    from hermes_hookspecs.text.query import Node

__all__ = ["Titled", "lift_titles"]

MOST_TITLES = 100
"""So many lineages with a title that matches take part in one answer."""
MOST_READ = 2000
USUAL_TITLE = 250.0
"""Titles are weighed as short texts, by the length of usual ones."""


class Titled(NamedTuple):
    """A lineage whose title matches.

    Attributes:
        weight: what bm25 makes of the title, without the rarity of what is looked for. whole: as whole words.
    """

    number: int
    lineage_id: LineageId
    title: str
    weight: float
    whole: bool


def lift_titles(
    finder: Finder, reader: SqliteReader, query: SearchQuery, parsed: Node, rows: LiveRows, *, weight: float
) -> None:
    """Add the lineages whose titles match to what was found, each with its best row, and lift them by their titles.

    :param finder: has run. rows: those among which it has looked. weight: of titles.
    """
    if not finder.is_complete:
        return
    try:
        found, are_all = _all_titled(reader, query, parsed, rows.visible, rows.owners)
        if not found:
            return
        finder.is_bounded |= not are_all
        within = rows.within([one.number for one in found])
        # What was settled among all lineages may have left rows of these unread.
        other = finder.again(within, len(found))
        other.run()
        finder.is_complete &= other.is_complete
        finder.best.merge(other.best)
        for one in found:
            impact = one.weight * weight
            if finder.best.has_row(one.lineage_id):
                finder.best.lift(one.lineage_id, impact * finder.weights.rarity, whole=one.whole)
            elif row := within.stand_in(one.number, last=query.sort == NEWEST):
                score = finder.weights.of_impact(impact, row.role, row.timestamp)
                finder.best.add_titled(row, one.title, worth(score, parts=not one.whole))
    except TimeoutError:
        finder.is_complete = False


def _all_titled(
    reader: SqliteReader, query: SearchQuery, parsed: Node, visible: str, owners: Sequence[str]
) -> tuple[list[Titled], bool]:
    """Return the lineages whose titles match, best first, and whether those are all.

    With many, the last active are looked at (``oldest``: the first made), and the best :data:`MOST_TITLES` returned.

    :param visible, owners: what the principal may read (:meth:`~hermes_hookspecs.ports.sqlite.SqliteAccess.visible`).
    """
    condition, bindings = title_may_hold(required(parsed) or parsed)
    order = "l.no" if query.sort == OLDEST else "l.last_activity DESC, l.no DESC"
    # The inner select reads an index that holds the titles; rows are looked up only for those that it lets through.
    sql = f"""
        SELECT l.no, l.id, l.title FROM lineages AS l
        WHERE l.no IN (SELECT no FROM lineages WHERE title IS NOT NULL AND {condition})
            AND {visible} AND l.id IS NOT ? ORDER BY {order} LIMIT ?
    """
    rows = reader.all(sql, (*bindings, *owners, query.exclude, MOST_READ))
    found = [one for row in rows if (one := _titled(parsed, row)) is not None]
    if query.sort != OLDEST:
        found.sort(key=lambda one: (one.whole, one.weight), reverse=True)
    return found[:MOST_TITLES], len(rows) < MOST_READ and len(found) <= MOST_TITLES


def _titled(parsed: Node, row: Sequence[object]) -> Titled | None:
    number, lineage_id, title = cast("tuple[int, LineageId, str]", row)  # columns of the statement
    folded = fold(title)
    if not holds(parsed, folded):
        return None
    weight = sum(impact(sum(1 for _ in leaf.needle.spans(folded)), len(folded), USUAL_TITLE) for leaf in leaves(parsed))
    return Titled(number, lineage_id, title, weight, holds_whole(parsed, folded))
