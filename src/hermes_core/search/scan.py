"""Search without an index: every row that may be seen is read. True to the letter, slow, and honest about it."""

from __future__ import annotations

import time
from math import log1p
from typing import TYPE_CHECKING, NamedTuple

from hermes_hookspecs.messages import USER
from hermes_hookspecs.ports.search import NEWEST, OLDEST, SORTS, SearchHit, SearchResult
from hermes_hookspecs.sessions import SessionFilter
from hermes_hookspecs.text.folding import fold
from hermes_hookspecs.text.parsing import parse
from hermes_hookspecs.text.query import holds, leaves
from hermes_hookspecs.text.rows import searched_text
from hermes_hookspecs.text.snippets import snippet
from hermes_hookspecs.text.written import may_hold_as_written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from hermes_hookspecs.ids import LineageId, MessageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.care import Finding
    from hermes_hookspecs.ports.search import SearchQuery
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionSummary
    from hermes_hookspecs.text.query import Node

__all__ = ["ScanIndex"]

_FIRST_PAGE, _MOST_PAGE = 50, 500
_CHARACTERS_OF_PAGE = 1_000_000
"""So much text at once, about: with rows of a megabyte each, 500 would not fit in memory."""
_CHARACTERS_A_LOOK = 50_000
"""So much text is read between two looks at the clock: a few milliseconds."""
_USER_WEIGHT = 1.2  # what a person said counts more than an answer that repeats it
_PART_WEIGHT = 0.5  # a part of a word counts less than the word
_TITLE_WEIGHT = 1.2
_AGAIN_WEIGHT = 0.25
_LENGTH_WEIGHT = 0.3
_USUAL_LENGTH = 200


class _Found(NamedTuple):
    """The row of one lineage; ``title`` is there only where no row matches."""

    place: tuple[float, float]
    score: float
    row: Message
    title: str | None = None


class ScanIndex:
    """Finds rows of any store by reading them (:class:`~hermes_hookspecs.ports.search.SearchIndex`).

    Conversations are read last active first, so that an answer which the budget cut short holds the newest.

    :param monotonic: seconds, for the budget.
    """

    name = "scan"

    def __init__(self, store: StoreReader, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._monotonic = monotonic

    def search(self, query: SearchQuery, principal: Principal) -> SearchResult:
        """Read rows until all are read or the budget is spent."""
        parsed = parse(query.text)
        if query.sort not in SORTS:
            raise ValueError(f"results are sorted by {', '.join(SORTS)}, not {query.sort!r}")
        deadline = self._monotonic() + query.budget_s
        where = SessionFilter(source=query.source, archived=None, empty=False)
        summaries = self._store.summaries(principal, where=where, limit=None)
        found: list[_Found] = []
        for done, summary in enumerate(summaries):
            best, is_whole = self._best(summary, query, parsed, principal, deadline)
            if best is not None:
                found.append(best)
            if not is_whole:
                return _result(
                    found,
                    query,
                    parsed,
                    f"searched row by row, without an index; {query.budget_s:g} s were over after {done} of"
                    f" {len(summaries)} conversations, last active first",
                )
        return _result(found, query, parsed, "")

    def _best(
        self, summary: SessionSummary, query: SearchQuery, parsed: Node, principal: Principal, deadline: float
    ) -> tuple[_Found | None, bool]:
        """Return the best row of one lineage, or the row that stands for a title that matches.

        And whether the budget was enough for all of its rows; what was found until then counts.
        """
        title = _matching_title(summary, query, parsed)
        lift = 0.0 if title is None else _TITLE_WEIGHT * _score(parsed, fold(title))
        best: _Found | None = None
        stand_in: Message | None = None
        is_whole = True
        may_hold = may_hold_as_written(parsed)
        try:
            for row in self._rows(summary.lineage_id, query, principal, deadline):
                if stand_in is None or query.sort == NEWEST:
                    stand_in = row
                text = searched_text(row)
                folded = fold(text) if may_hold(text) else ""
                if not folded or not holds(parsed, folded):
                    continue
                score = lift + _score(parsed, folded) * (_USER_WEIGHT if row.role == USER else 1.0)
                place = _place(query.sort, score, row)
                if best is None or place > best.place:
                    best = _Found(place, score, row)
        except TimeoutError:
            is_whole = False
        if best is None and title is not None and stand_in is not None:
            best = _Found(_place(query.sort, lift, stand_in), lift, stand_in, title)
        return best, is_whole

    def _rows(
        self, lineage_id: LineageId, query: SearchQuery, principal: Principal, deadline: float
    ) -> Iterator[Message]:
        """Yield the rows of one lineage that the filters let through, in pages: no read transaction stays open."""
        after: MessageId | None = None
        limit = _FIRST_PAGE
        while True:
            self._check_time(deadline)
            page = self._store.messages(lineage_id, principal, after=after, limit=limit)
            length = unlooked = 0
            for row in page:
                unlooked += len(row.content)
                if unlooked > _CHARACTERS_A_LOOK:
                    length, unlooked = length + unlooked, 0
                    self._check_time(deadline)
                if _is_wanted(row, query):
                    yield row
            if len(page) < limit:
                return
            after = page[-1].id
            limit = max(1, min(_MOST_PAGE, limit * _CHARACTERS_OF_PAGE // max(length + unlooked, 1)))

    def _check_time(self, deadline: float) -> None:
        if self._monotonic() >= deadline:
            raise TimeoutError

    def catch_up(self, *, budget_s: float) -> int:
        """Nothing lags."""
        return 0

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """There is nothing to build; it holds no rows."""
        return 0

    def verify(self) -> Sequence[Finding]:
        """There is nothing that could be wrong."""
        return ()

    def status(self) -> Sequence[tuple[str, str | int]]:
        """Say that there is no index."""
        return (("index", "none: every search reads the rows one by one"),)


def _is_wanted(row: Message, query: SearchQuery) -> bool:
    if row.role not in query.roles:
        return False
    if query.since is not None and row.timestamp < query.since:
        return False
    if query.until is not None and row.timestamp >= query.until:
        return False
    if row.lineage_id != query.exclude:
        return True
    return query.exclude_from is not None and row.id < query.exclude_from


def _place(sort: str, score: float, row: Message) -> tuple[float, float]:
    """Return what rows are compared by; the greatest is the best."""
    if sort == NEWEST:
        return row.timestamp, row.id
    if sort == OLDEST:
        return -row.timestamp, -row.id
    return score, row.id


def _matching_title(summary: SessionSummary, query: SearchQuery, parsed: Node) -> str | None:
    if summary.title is None or summary.lineage_id == query.exclude:
        return None
    return summary.title if holds(parsed, fold(summary.title)) else None


def _score(parsed: Node, folded: str) -> float:
    """Return how well a text answers: whole words, often, in a short text."""
    total = 0.0
    for leaf in leaves(parsed):
        spans = list(leaf.needle.spans(folded))
        if spans:
            whole = any(leaf.needle.is_whole(folded, span) for span in spans)
            total += (1.0 if whole else _PART_WEIGHT) + _AGAIN_WEIGHT * log1p(len(spans) - 1)
    length = 1.0 + _LENGTH_WEIGHT * log1p(len(folded) / _USUAL_LENGTH)
    return total / length


def _result(found: list[_Found], query: SearchQuery, parsed: Node, stopped: str) -> SearchResult:
    best = sorted(found, key=lambda one: one.place, reverse=True)[: max(query.limit, 0)]
    hits = tuple(
        SearchHit(
            lineage_id=one.row.lineage_id,
            session_id=one.row.session_id,
            message_id=one.row.id,
            score=round(one.score, 6),
            snippet=snippet(one.title or searched_text(one.row), parsed),
            by_title=one.title is not None,
        )
        for one in best
    )
    return SearchResult(hits=hits, complete=not stopped, note=stopped or "searched row by row, without an index")
