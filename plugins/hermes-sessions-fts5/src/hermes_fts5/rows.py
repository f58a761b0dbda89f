"""Rows of the store as a search reads them: live, allowed, and let through by the filters, all in one condition."""

# ruff: noqa: S608 - statements are put together from constants and the store's own condition; values are always bound

from __future__ import annotations

import time
from math import inf
from typing import TYPE_CHECKING, cast

import attrs

from hermes_fts5.sieve import may_hold
from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.written import may_hold_as_written

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.ports.search import SearchQuery
    from hermes_hookspecs.ports.sqlite import SqliteAccess, SqliteReader, SqliteValue
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.text.query import Leaf, Node

    Cells = tuple[SqliteValue, ...]

__all__ = ["IDS_AT_ONCE", "LiveRow", "LiveRows"]

IDS_AT_ONCE = 200
PAGE = 1000
BYTES_AT_ONCE = 1_000_000
"""Rows are read so few at a time that the time can be looked at in between."""
USUAL_CHARACTERS = 250.0
FIELDS = "m.id, l.id, m.session_id, m.role, m.timestamp"
FROM = "messages AS m CROSS JOIN lineages AS l ON l.no = m.lineage_no"
OF_SOURCE = " AND (SELECT s.source FROM sessions AS s WHERE s.id = m.session_id) = ?"
OF_ORDER = {
    False: "SELECT m.id, {sizes} FROM messages AS m WHERE m.id > ? AND m.id <= ? ORDER BY m.id DESC LIMIT ?",
    True: "SELECT m.id, {sizes} FROM messages AS m WHERE m.id > ? AND m.id <= ? ORDER BY m.id LIMIT ?",
}
# What bm25 makes of a needle, of characters instead of tokens and without rarity: computed where the text lies.
IMPACT = """
    (SELECT iif(count, count * 2.2 / (count + 0.3 + 0.9 * length / {usual}), 0) FROM (SELECT
        length(m.content) AS length,
        (length(m.content) - length(replace(lower(m.content), ?, ''))) * 1.0 / ? AS count))
"""


@attrs.frozen
class LiveRow:
    """One row that may be shown. ``folded``: its searched text; ``timestamp``: UTC milliseconds."""

    id: MessageId
    lineage_id: LineageId
    session_id: SessionId
    role: str
    timestamp: int
    text: str
    folded: str


class LiveRows:
    """The rows of one state of the store that one search may show.

    :param reader: of one read transaction. among: numbers of the lineages that count, ``None`` for all.
    :param until: ``time.monotonic`` seconds from which on reading raises :class:`TimeoutError`.

    Attributes:
        visible, owners: the condition that says what may be read, and its bindings.
    """

    def __init__(
        self,
        reader: SqliteReader,
        access: SqliteAccess,
        query: SearchQuery,
        principal: Principal,
        *,
        among: Sequence[int] | None = None,
        until: float = inf,
    ) -> None:
        self._reader = reader
        self._access = access
        self.visible, self.owners = access.visible(principal)
        self._condition, self._bindings = _condition(query, self.visible, self.owners)
        self._query = query
        self._principal = principal
        self._among = among
        self._until = until
        if among is not None:
            self._condition += f" AND m.lineage_no IN ({_marks(among)})"
            self._bindings += tuple(among)
        columns = ", ".join(f"m.{name}" for name in access.searched_columns)
        self._fields = f"{FIELDS}, {columns}"
        # Lengths are read without the texts.
        self._sizes = " + ".join(f"coalesce(octet_length(m.{name}), 0)" for name in access.searched_columns)

    def within(self, lineages: Sequence[int]) -> LiveRows:
        """Return those of these rows that are of some lineages, by their numbers."""
        return LiveRows(self._reader, self._access, self._query, self._principal, among=lineages, until=self._until)

    def places(self, most: int) -> Sequence[int] | None:
        """Return the numbers of the lineages that may be read, ``None`` where that is all of them or more than most."""
        if self._among is not None:
            return self._among
        if self.visible == "TRUE":
            return None
        sql = f"SELECT l.no FROM lineages AS l WHERE {self.visible} LIMIT ?"
        found = [cast("int", row[0]) for row in self._reader.all(sql, (*self.owners, most + 1))]
        return None if len(found) > most else found

    def of(self, ids: Sequence[int], *, needed: Node | None = None) -> Iterator[LiveRow]:
        """Yield those of these rows that may be shown, in the order of the ids.

        :param needed: leaves rows out that certainly do not hold it.
        """
        sieve, needles = ("TRUE", ()) if needed is None else may_hold(needed)
        for part in self._parts(ids):
            sql = f"SELECT {self._fields} FROM {FROM} WHERE m.id IN ({_marks(part)}) AND {sieve} AND {self._condition}"
            rows = self._reader.all(sql, (*part, *needles, *self._bindings))
            found: dict[int, LiveRow] = {row.id: row for row in self._live(rows, needed)}
            yield from (found[each] for each in part if each in found)

    def _parts(self, ids: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield the ids of those that may be shown, in their order, as many at a time as may be read at once."""
        for start in range(0, len(ids), IDS_AT_ONCE):
            part = ids[start : start + IDS_AT_ONCE]
            sql = f"SELECT m.id, {self._sizes} FROM {FROM} WHERE m.id IN ({_marks(part)}) AND {self._condition}"
            known = {cast("int", row[0]): row[1] for row in self._reader.all(sql, (*part, *self._bindings))}
            sizes = [(each, known[each]) for each in part if each in known]
            while sizes:
                count = _fitting(sizes)
                yield [each for each, _ in sizes[:count]]
                del sizes[:count]

    def stand_in(self, lineage_no: int, *, last: bool) -> LiveRow | None:
        """Return the first row of a lineage that may be shown, or the last."""
        order = "DESC" if last else "ASC"
        sql = f"""
            SELECT {self._fields} FROM {FROM}
            WHERE m.lineage_no = ? AND {self._condition} ORDER BY m.id {order} LIMIT 1
        """
        found = self._reader.one(sql, (lineage_no, *self._bindings))
        return None if found is None else next(self._live([found]))

    def between(self, above: int, top: int, needed: Node, *, oldest_first: bool = False) -> Iterator[LiveRow]:
        """Yield rows with ids above ``above`` up to ``top`` that may hold what is needed, last stored first or last."""
        condition, bindings = may_hold(needed)
        order = "ASC" if oldest_first else "DESC"
        sql = f"""
            SELECT {self._fields} FROM {FROM}
            WHERE m.id BETWEEN ? AND ? AND {condition} AND {self._condition} ORDER BY m.id {order}
        """
        stretch = OF_ORDER[oldest_first].format(sizes=self._sizes)
        while sizes := self._reader.all(stretch, (above, top, PAGE)):
            first, last = cast("int", sizes[0][0]), cast("int", sizes[_fitting(sizes) - 1][0])
            page = self._reader.all(sql, (min(first, last), max(first, last), *bindings, *self._bindings))
            yield from self._live(page, needed)
            above, top = (last, top) if oldest_first else (above, last - 1)

    def outlines(self, ids: Sequence[int]) -> list[tuple[int, str, str, int]]:
        """Return ``(id, lineage id, role, timestamp)`` of those of these rows that may be shown, in any order."""
        found: list[tuple[int, str, str, int]] = []
        for start in range(0, len(ids), IDS_AT_ONCE):
            part = ids[start : start + IDS_AT_ONCE]
            where = f"m.id IN ({_marks(part)}) AND {self._condition}"
            sql = f"SELECT m.id, l.id, m.role, m.timestamp FROM {FROM} WHERE {where}"
            found += cast("list[tuple[int, str, str, int]]", self._reader.all(sql, (*part, *self._bindings)))
        return found

    def weighed(self, ids: Sequence[int], looked_for: Sequence[Leaf]) -> list[tuple[float, int, str, str, int]]:
        """Return ``(impact, id, lineage id, role, timestamp)`` of these rows, as far as they may be shown."""
        needles = [leaf.needle.text for leaf in looked_for if leaf.needle.text]
        impact = " + ".join([IMPACT.format(usual=USUAL_CHARACTERS)] * len(needles)) or "0"
        texts = tuple(cell for needle in needles for cell in (needle, len(needle)))
        found: list[tuple[float, int, str, str, int]] = []
        for part in self._parts(ids):
            sql = f"""
                SELECT {impact}, m.id, l.id, m.role, m.timestamp FROM {FROM}
                WHERE m.id IN ({_marks(part)}) AND {self._condition}
            """
            rows = self._reader.all(sql, (*texts, *part, *self._bindings))
            self._check_time()
            found += cast("list[tuple[float, int, str, str, int]]", rows)  # the columns of the statement
        return found

    def _check_time(self) -> None:
        if time.monotonic() >= self._until:
            raise TimeoutError

    def _live(self, rows: Sequence[Cells], needed: Node | None = None) -> Iterator[LiveRow]:
        """Yield rows, without those that certainly do not hold what is needed."""
        may_hold_it = None if needed is None else may_hold_as_written(needed)
        for message_id, lineage_id, session_id, role, timestamp, *searched in rows:
            self._check_time()
            text = self._access.searched_text(searched)
            if may_hold_it is None or may_hold_it(text):
                # declared so in the tables
                yield LiveRow(message_id, lineage_id, session_id, role, timestamp, text, fold(text))  # type: ignore[arg-type]


def _fitting(sizes: Sequence[Cells]) -> int:
    """As many of the first rows, by ``(id, bytes)``, as may be read at once: at least one."""
    total = 0
    for count, (_, size) in enumerate(sizes):
        total += cast("int", size)
        if total > BYTES_AT_ONCE:
            return max(1, count)
    return len(sizes)


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _condition(query: SearchQuery, visible: str, owners: Sequence[str]) -> tuple[str, tuple[SqliteValue, ...]]:
    condition = f"m.hidden = 0 AND {visible}"
    bindings: list[SqliteValue] = list(owners)
    condition += f" AND m.role IN ({_marks(query.roles)})"
    bindings += query.roles
    for value, text in ((query.since, " AND m.timestamp >= ?"), (query.until, " AND m.timestamp < ?")):
        if value is not None:
            condition += text
            bindings.append(value)
    if query.source is not None:
        condition += OF_SOURCE
        bindings.append(query.source)
    if query.exclude is not None:
        condition += " AND NOT (l.id = ? AND m.id >= ?)"
        bindings += (query.exclude, query.exclude_from or 0)
    return condition, tuple(bindings)
