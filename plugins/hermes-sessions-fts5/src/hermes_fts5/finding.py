"""One search in one state of the store: the index where there is one, the rows themselves where there is none yet."""

from __future__ import annotations

import time
from bisect import bisect_right
from heapq import heapify, heappop
from operator import itemgetter
from typing import TYPE_CHECKING, cast

from attrs import evolve

from hermes_fts5.documents import PARTS_FROM
from hermes_fts5.longs import best_of_parts, long_rows, needs_parts_apart
from hermes_fts5.lookup import MARKS, NOTHING, TEXTS, Lookup, has_parts, parts_of_words, whole_words
from hermes_fts5.narrowing import of_roles, within_places
from hermes_fts5.ranking import Best, holds_whole
from hermes_fts5.rows import IDS_AT_ONCE
from hermes_fts5.steps import number, state
from hermes_fts5.vocabulary import Vocabulary
from hermes_fts5.weighing import Weights, worth
from hermes_hookspecs.ports.search import NEWEST, OLDEST, RELEVANCE
from hermes_hookspecs.text.query import holds, leaves, required

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from hermes_fts5.config import Fts5Config
    from hermes_fts5.rows import LiveRow, LiveRows
    from hermes_hookspecs.ports.search import SearchQuery
    from hermes_hookspecs.ports.sqlite import SqliteReader
    from hermes_hookspecs.text.query import Node

__all__ = ["Finder"]

FEW_PLACES = 100
FIRST_PAGE = 24
LOOKED_AT = 48
TAIL = "SELECT DISTINCT message_id FROM changes WHERE id > ? AND message_id IS NOT NULL"
NEWEST_ROW = "SELECT coalesce(max(id), 0) FROM messages"
ROWS_OF_INDEX = f"SELECT coalesce(max(id), 0) FROM messages_fts_docsize WHERE id < {PARTS_FROM}"  # noqa: S608 - a constant
# In the order of storing further parts of long rows have no place.
HEADS = f"rowid < {PARTS_FROM}"
COUNTS = {
    table: f"SELECT count(*) FROM (SELECT 1 FROM {table} WHERE {table} MATCH ? LIMIT ?)"  # noqa: S608 - constants
    for table in (TEXTS, MARKS)
}
RANKED = "SELECT rowid, rank FROM messages_fts WHERE messages_fts MATCH ? ORDER BY rowid"
STORED_AT = "SELECT id, timestamp FROM messages WHERE id >= ? ORDER BY id LIMIT 1"
DOWN = {
    table: f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid < ? ORDER BY rowid DESC LIMIT ?"  # noqa: S608 - same
    for table in (TEXTS, MARKS)
}
UP = {
    table: f"SELECT rowid FROM {table} WHERE {table} MATCH ? AND rowid > ? AND {HEADS} ORDER BY rowid LIMIT ?"  # noqa: S608 - same
    for table in (TEXTS, MARKS)
}
NO_ID = PARTS_FROM
MOST_LONG = 100
LONG_AT_ONCE = 8


class Finder:
    """Finds rows, for as long as it is given.

    :param watermark: last change that the index holds; ``None``: there is no index that can be asked.
    :param now: UTC milliseconds, for the age of rows. until: ``time.monotonic`` seconds when the time is over.
    """

    def __init__(
        self, reader: SqliteReader, rows: LiveRows, config: Fts5Config, query: SearchQuery, parsed: Node, *,
        watermark: int | None, now: int, until: float,
    ) -> None:  # fmt: skip
        self._reader = reader
        self._rows = rows
        self._config = config
        self._query = query
        self._parsed = parsed
        self._needed = required(parsed) or parsed
        self._looked_for = tuple(leaves(parsed))
        self._watermark = watermark
        self._now = now
        self._until = until
        self._seen: set[int] = set()
        self._counts: dict[str, int] = {}
        self.weights = Weights(config, self._looked_for, now)
        self.best = Best(query.sort, query.limit)
        self.is_bounded = False
        self.is_complete = True

    def run(self) -> None:
        """Fill :attr:`best`; :attr:`is_complete` says whether there was time for everything."""
        try:
            self._run()
        except TimeoutError:
            self.is_complete = False

    def again(self, rows: LiveRows, limit: int) -> Finder:
        """Return who looks for the same among other rows, in the same time."""
        return Finder(
            self._reader, rows, self._config, evolve(self._query, limit=limit), self._parsed,
            watermark=self._watermark, now=self._now, until=self._until,
        )  # fmt: skip

    def _run(self) -> None:
        if self._watermark is None:
            self._scan(self._rows.between(0, self._newest(), self._needed))
            return
        tail = [cast("int", row[0]) for row in self._reader.all(TAIL, (self._watermark,))]
        backfill = state(self._reader, "backfill")
        self._seen.update(tail)
        places = self._rows.places(FEW_PLACES)
        if places is not None and not places:
            return
        vocabulary = Vocabulary(self._reader)
        first = whole_words(self._needed, vocabulary)
        self._note_rarity(first)
        self._scan(self._rows.of(tail, needed=self._needed), seen=True)
        if first is None:
            # Nothing in it can be looked up: rows are read, the last first.
            self._scan(self._rows.between(0, self._newest(), self._needed))
            return
        first = self._with_few_signs(first)
        if self._query.sort == RELEVANCE:
            self._by_relevance(first, places, vocabulary)
        else:
            has_other = first.table == TEXTS and has_parts(self._needed)
            self._by_time(parts_of_words(self._needed, vocabulary) if has_other else first, places)
        if first.table == TEXTS and (self._query.sort != RELEVANCE or needs_parts_apart(self._needed)):
            self._take_long(places, vocabulary)
        if backfill:
            self._scan(self._rows.between(0, backfill, self._needed))

    def _newest(self) -> int:
        return number(self._reader, NEWEST_ROW)

    def _check_time(self) -> None:
        if time.monotonic() >= self._until:
            raise TimeoutError

    # --- rows that are not in the index

    def _scan(self, rows: Iterator[LiveRow], *, seen: bool = False) -> None:
        for row in rows:
            self._check_time()
            if (seen or row.id not in self._seen) and holds(self._parsed, row.folded):
                self._seen.add(row.id)
                self.best.add(row, worth(self.weights.of_text(row), parts=not holds_whole(self._parsed, row.folded)))

    def _scan_newest(self) -> None:
        """Rows that hold what is looked for, the last stored first, as many as are compared where there are many."""
        left = self._config.newest_hits
        for row in self._rows.between(0, self._newest(), self._needed):
            known = len(self._seen)
            self._scan(iter((row,)))
            left -= len(self._seen) > known
            if left <= 0 and self.best.is_settled(0.0):
                self.is_bounded = True
                return

    def _scan_by_time(self, *, is_newest: bool) -> None:
        """Rows in the order of storing, or against it, until no later one can be in time."""
        disorder = state(self._reader, "disorder")
        for row in self._rows.between(0, self._newest(), self._needed, oldest_first=not is_newest):
            self._scan(iter((row,)))
            if self.best.is_settled((row.timestamp if is_newest else -row.timestamp) + disorder):
                return

    # --- rows that are

    def _note_rarity(self, lookup: Lookup | None) -> None:
        """Rarity of what is looked for, so that rows inside and outside the index are weighed alike."""
        if lookup is None or lookup.expression == NOTHING:
            return
        count = self._count(lookup.table, lookup.expression)
        self.weights.note_rarity(count, max(number(self._reader, ROWS_OF_INDEX), count))

    def _count(self, table: str, expression: str) -> int:
        """How many rows there are, counted to one more than are scored exactly."""
        if expression not in self._counts:
            self._counts[expression] = number(self._reader, COUNTS[table], (expression, self._exactly(table) + 1))
        return self._counts[expression]

    def _exactly(self, table: str) -> int:
        config = self._config
        return config.exact_hits if table == TEXTS else min(config.exact_hits, config.newest_hits + config.strong_hits)

    def _with_few_signs(self, first: Lookup) -> Lookup:
        """The rows with the punctuation of the query instead of those with its words, if they are few."""
        if first.signs is None or first.table != TEXTS:
            return first
        few = self._count(MARKS, first.signs) <= self._exactly(MARKS)
        return Lookup(MARKS, first.signs) if few else first

    def _by_relevance(self, first: Lookup, places: Sequence[int] | None, vocabulary: Vocabulary) -> None:
        # What has the marks may hold words whole or as parts: the rows tell.
        self._rank(first, places, parts=False if first.table == TEXTS else None)
        if first.table == MARKS or self.best.is_settled(1.0):
            return  # whole words come before parts, so the second reading has nothing to add
        if has_parts(self._needed):
            second = parts_of_words(self._needed, vocabulary)
            if second is None:
                self._scan_newest()
            else:
                self._rank(second, places, parts=True)

    def _rank(self, lookup: Lookup, places: Sequence[int] | None, *, parts: bool | None) -> None:
        if lookup.expression == NOTHING:
            return
        expression = within_places(lookup, places)
        count = self._count(lookup.table, expression)
        if not count:
            return
        if count > self._exactly(lookup.table):
            # Of fewer rows those of other roles fall out when they are read: FTS5 takes 10 ms to leave out a frequent
            # role at a million rows, for bm25 counts how many rows hold it.
            expression = of_roles(lookup.table, expression, self._query.roles)
            count = self._count(lookup.table, expression)
        if count > self._exactly(lookup.table):
            self.is_bounded = True
            self._rank_some(lookup, expression, parts=parts)
        elif lookup.table == TEXTS:
            self._rank_all(expression, parts=bool(parts))
        else:
            ids = [cast("int", row[0]) for row in self._reader.all(DOWN[MARKS], (expression, NO_ID, -1))]
            self._take_weighed(ids, parts=parts)

    def _rank_all(self, expression: str, *, parts: bool) -> None:
        """Every row by bm25, until no later one can change the answer.

        A row's role and exact age need a look at it. Its id tells how new it can be at most, and so what it can be
        worth at most: in that order rows are looked at, and wait in ``waiting`` while one that follows may be better.
        """
        following = self._possibly_best(expression)
        waiting: list[tuple[float, int, str]] = []
        size = LOOKED_AT
        while following or waiting:
            page = [heappop(following) for _ in range(min(len(following), size))]
            size = min(2 * size, IDS_AT_ONCE)
            waiting += self._with_factors({rowid: score for _, rowid, score in page})
            waiting.sort()
            possible = -following[0][0] if following else 0.0
            certain: list[tuple[float, int, str]] = []
            while waiting and waiting[-1][0] >= possible:
                certain.append(waiting.pop())
            self._take(certain, parts=parts)
            if self.best.is_settled(worth(possible * self.weights.most_by_nearness, parts=parts)):
                return

    def _possibly_best(self, expression: str) -> list[tuple[float, int, float]]:
        """A heap of ``(most that it can be worth, negative; id; bm25)``."""
        found, parts = best_of_parts(cast("list[tuple[int, float]]", self._reader.all(RANKED, (expression,))))
        heap = [(rank * self._config.greatest_factor, rowid, -rank) for rowid, rank in parts]
        begin = 0
        for last_id, factor in self._timeline():
            # Rows come in the order of their ids.
            end = bisect_right(found, last_id, begin, key=itemgetter(0))
            heap += [(rank * factor, rowid, -rank) for rowid, rank in found[begin:end]]
            begin = end
        heapify(heap)
        return heap

    def _timeline(self) -> Sequence[tuple[int, float]]:
        """``(last id, greatest factor)`` of stretches of rows, in the order of ids, finer towards the newest."""
        newest, role = self._newest(), self._config.greatest_role
        disorder = state(self._reader, "disorder")
        stretches: list[tuple[int, float]] = []
        distance = newest
        while distance > 1:
            distance //= 2
            found = self._reader.one(STORED_AT, (newest - distance,))
            if found is not None:
                at = cast("int", found[1]) + disorder
                stretches.append((cast("int", found[0]), self.weights.factor("", at) * role))
        return (*stretches, (NO_ID, self._config.greatest_factor))

    def _with_factors(self, ranked: Mapping[int, float]) -> list[tuple[float, int, str]]:
        scores = {rowid: rank for rowid, rank in ranked.items() if rowid not in self._seen}
        self._seen.update(scores)
        return [
            (scores[message_id] * self.weights.factor(role, timestamp), message_id, lineage_id)
            for message_id, lineage_id, role, timestamp in self._rows.outlines(list(scores))
        ]

    def _take(self, scored: Sequence[tuple[float, int, str]], *, parts: bool | None, page: int = 0) -> None:
        """Verify rows, best first, until the rest of them cannot change the answer.

        :param parts: whether they hold parts of words, ``None``: to be seen. page: how many are read at once.
        """
        page = page or max(8, 2 * self._query.limit)

        def most(score: float) -> float:
            return worth(score * self.weights.most_by_nearness, parts=bool(parts))

        waiting = [each for each in scored if not self.best.has_better(each[2], most(each[0]))]
        for start in range(0, len(waiting), page):
            part = waiting[start : start + page]
            if self.best.is_settled(most(part[0][0])):
                return
            scores = {message_id: score for score, message_id, _ in part}
            for row in self._rows.of(list(scores)):
                self._check_time()
                if holds(self._parsed, row.folded):
                    of_parts = not holds_whole(self._parsed, row.folded) if parts is None else parts
                    self.best.add(row, worth(scores[row.id] * self.weights.near(row.folded), parts=of_parts))

    def _rank_some(self, lookup: Lookup, expression: str, *, parts: bool | None) -> None:
        """The newest rows and those that are full of what is looked for; more of the newest while too few are right."""
        reader, config = self._reader, self._config
        newest = reader.all(DOWN[lookup.table], (expression, NO_ID, config.newest_hits))
        ids = dict.fromkeys(cast("int", row[0]) for row in newest)
        if lookup.strong != NOTHING and config.strong_hits:
            strong = reader.all(DOWN[MARKS], (lookup.strong, NO_ID, config.strong_hits))
            ids |= dict.fromkeys(cast("int", row[0]) for row in strong)
        self._take_weighed(list(ids), parts=parts)
        below = cast("int", newest[-1][0]) if newest else 0
        while below and not self.best.is_settled(1.0 if not parts else 0.0):
            page = [cast("int", row[0]) for row in reader.all(DOWN[lookup.table], (expression, below, IDS_AT_ONCE * 5))]
            self._take_weighed(page, parts=parts)
            below = page[-1] if page else 0

    def _take_weighed(self, ids: Sequence[int], *, parts: bool | None, page: int = 0) -> None:
        """Take rows by what their texts are worth."""
        fresh = [each for each in ids if each not in self._seen]
        self._seen.update(fresh)
        weighed = [
            (self.weights.of_impact(weight, role, timestamp), message_id, lineage_id)
            for weight, message_id, lineage_id, role, timestamp in self._rows.weighed(fresh, self._looked_for)
        ]
        self._take(sorted(weighed, reverse=True), parts=parts, page=page)

    def _take_long(self, places: Sequence[int] | None, vocabulary: Vocabulary) -> None:
        """Rows that the index holds in parts, and that hold what is looked for in several of them."""
        is_relevance = self._query.sort == RELEVANCE
        if is_relevance and self.best.is_settled(1.0):
            return  # words that stand so far apart come last

        def within(expression: str) -> str:
            return of_roles(TEXTS, within_places(Lookup(TEXTS, expression), places), self._query.roles)

        found = long_rows(self._reader, self._needed, vocabulary, within) - self._seen
        ids = sorted(found, reverse=self._query.sort != OLDEST)
        if not is_relevance:
            self._take_in_order(ids, at_once=LONG_AT_ONCE)
            return
        for start in range(0, len(ids), MOST_LONG):
            self._take_weighed(ids[start : start + MOST_LONG], parts=None, page=LONG_AT_ONCE)
            if self.best.is_settled(1.0):
                self.is_bounded |= start + MOST_LONG < len(ids)
                return

    def _by_time(self, lookup: Lookup | None, places: Sequence[int] | None) -> None:
        """As :meth:`_scan_by_time`, by the index where what is looked for can be looked up."""
        is_newest = self._query.sort == NEWEST
        if lookup is None:
            self._scan_by_time(is_newest=is_newest)
            return
        if lookup.expression == NOTHING:
            return
        expression = within_places(lookup, places)
        statement, at = (DOWN[lookup.table], NO_ID) if is_newest else (UP[lookup.table], 0)
        page = max(FIRST_PAGE, 4 * self._query.limit)
        while True:
            ids = [cast("int", row[0]) for row in self._reader.all(statement, (expression, at, page))]
            if self._take_in_order([each for each in ids if each not in self._seen]) or len(ids) < page:
                return
            at = ids[-1]
            page = min(page * 4, IDS_AT_ONCE * 5)

    def _take_in_order(self, ids: Sequence[int], *, at_once: int = IDS_AT_ONCE) -> bool:
        """Verify rows in the order of storing, or against it; say whether no later one can be in time."""
        is_newest = self._query.sort == NEWEST
        disorder = state(self._reader, "disorder")
        self._seen.update(ids)
        for start in range(0, len(ids), at_once):
            for row in self._rows.of(ids[start : start + at_once]):
                self._check_time()
                if holds(self._parsed, row.folded):
                    self.best.add(row, 1.0)
                if self.best.is_settled((row.timestamp if is_newest else -row.timestamp) + disorder):
                    return True
        return False
