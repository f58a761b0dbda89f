"""The port of a search index, and what a search answers.

An index finds rows; the core makes of them what people and agents get (:class:`SearchAnswer`). Which texts a query
matches is said in one place, :mod:`hermes_hookspecs.text`: an index may know a quicker way, never another answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.ports.care import Finding
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal

__all__ = [
    "BROWSE",
    "DISCOVER",
    "HIT_END",
    "HIT_START",
    "NEWEST",
    "OLDEST",
    "READ",
    "RELEVANCE",
    "SCROLL",
    "SORTS",
    "FoundSession",
    "SearchAnswer",
    "SearchHit",
    "SearchIndex",
    "SearchQuery",
    "SearchResult",
    "SearchSource",
    "Searching",
    "ShownMessage",
    "plain",
]

HIT_START, HIT_END = "\x02", "\x03"
"""What stands before and behind a hit in a snippet."""

RELEVANCE, NEWEST, OLDEST = "relevance", "newest", "oldest"
SORTS = (RELEVANCE, NEWEST, OLDEST)

DISCOVER, SCROLL, READ, BROWSE = "discover", "scroll", "read", "browse"
"""Modes of an answer."""


@attrs.frozen(kw_only=True)
class SearchQuery:
    """What is asked. Access and filters come before ``limit``.

    Attributes:
        text: see :mod:`hermes_hookspecs.text.parsing`.
        limit: most hits, that is lineages. sort: ``relevance``, ``newest`` or ``oldest`` (by the time of the row,
            then its id).
        roles: which rows count. source: platform, as :class:`~hermes_hookspecs.sessions.SessionFilter` takes it.
        since, until: UTC milliseconds of the row, from and before.
        exclude: lineage whose live context is left out: its rows from ``exclude_from`` on, all where that is ``None``.
        budget_s: seconds after which the answer is incomplete rather than late.
    """

    text: str
    limit: int = 3
    sort: str = RELEVANCE
    roles: tuple[str, ...] = ("user", "assistant")
    source: str | None = None
    since: int | None = None
    until: int | None = None
    exclude: LineageId | None = None
    exclude_from: MessageId | None = None
    budget_s: float = 2.0


@attrs.frozen(kw_only=True)
class SearchHit:
    """The best row of one lineage.

    Attributes:
        score: comparable within one answer, higher is better.
        snippet: :func:`hermes_hookspecs.text.snippets.snippet` of the row.
        by_title: no row matches, the title of the lineage does, and the snippet is of the title.
    """

    lineage_id: LineageId
    session_id: SessionId
    message_id: MessageId
    score: float
    snippet: str
    by_title: bool = False


@attrs.frozen(kw_only=True)
class SearchResult:
    """Hits, best first, one per lineage.

    Attributes:
        complete: false when the budget ended the search early: there may be more, or better ones.
        note: a sentence for people: why it is incomplete, or how it was searched; ``""`` where all is as usual.
    """

    hits: tuple[SearchHit, ...]
    complete: bool
    note: str = ""


class SearchIndex(Protocol):
    """Finds rows of one store. Thread-safe; every method blocks."""

    name: str

    def search(self, query: SearchQuery, principal: Principal) -> SearchResult:
        """Return the best row of each lineage that the principal may see. Blocks up to the query's budget.

        A row is found from the moment it is stored, however far the index lags, and not any more from the moment it
        is hidden or deleted. With ``newest`` or ``oldest`` the best row of a lineage is its newest or oldest.

        A title is searched like a text: a lineage whose title matches is found if any row of it passes the filters.
        Its hit is its best row that matches; where none does, the first that passes, with ``newest`` the last. The
        title of the lineage that is excluded does not count. In order of relevance a title adds to the score.

        :raises ValueError: a query with a real mistake (:class:`~hermes_hookspecs.text.parsing.QueryError`), or an
            unknown sort; the text says which.
        """
        ...

    def catch_up(self, *, budget_s: float) -> int:
        """Index what the change feed brought since; return how many changes are left, 0 where nothing lags."""
        ...

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Make the index anew from the rows of the store; return how many rows it holds.

        Others go on reading and writing meanwhile, and find everything. An interrupted rebuild is gone on with, or
        begun anew, by the next call.

        :param progress: told rows done and rows in all.
        """
        ...

    def verify(self) -> Sequence[Finding]:
        """Return what is wrong with the index, nothing when it is sound; changes nothing, may read all of it."""
        ...

    def status(self) -> Sequence[tuple[str, str | int]]:
        """Return facts for people: ``(name, value)``, counts as numbers; quick."""
        ...


class SearchSource(Protocol):
    """A kind of index, by name."""

    name: str
    backends: tuple[str, ...]
    """Names of the stores it works on, empty for all."""

    def open(self, store: Store) -> SearchIndex:
        """Return the index of an open store. Does not wait for the index to be complete.

        :raises HermesError: it does not work on this store; search then scans, and says so.
        """
        ...


@attrs.frozen(kw_only=True)
class ShownMessage:
    """A row as a search shows it.

    Attributes:
        content: cut in the middle where it is long; the mark there says how much is missing.
        tool_calls: ``(name, arguments)``, the arguments cut likewise. cut: something is missing.
        anchor: this is the row that was found, or asked for.
    """

    message_id: MessageId
    session_id: SessionId
    role: str
    timestamp: int
    content: str
    tool_name: str | None = None
    tool_calls: tuple[tuple[str, str], ...] = ()
    cut: bool = False
    anchor: bool = False


@attrs.frozen(kw_only=True)
class FoundSession:
    """One lineage in an answer.

    Attributes:
        session_id: the segment of the match; else the one asked for, or the tip.
        source: platform. started_at: of the first segment. last_active: of the lineage.
        match_message_id, matched_role, snippet, score: of the row that was found; ``None``, ``""`` without one.
        by_title: the title matches and no row does; the match is the row that stands for it, the snippet the title's.
        messages: the rows around the match, in order of storing. messages_before, messages_after: how many rows of
            the lineage stand before and behind those, of the roles asked for, counted up to a hundred.
        bookend_start, bookend_end: first and last rows of the lineage, as far as ``messages`` does not show them.
    """

    lineage_id: LineageId
    session_id: SessionId
    parent_session_id: SessionId | None
    title: str | None
    source: str
    model: str | None
    started_at: int
    last_active: int
    message_count: int
    preview: str
    match_message_id: MessageId | None = None
    matched_role: str | None = None
    snippet: str = ""
    score: float | None = None
    by_title: bool = False
    messages: tuple[ShownMessage, ...] = ()
    messages_before: int = 0
    messages_after: int = 0
    bookend_start: tuple[ShownMessage, ...] = ()
    bookend_end: tuple[ShownMessage, ...] = ()


@attrs.frozen(kw_only=True)
class SearchAnswer:
    """What ``session_search`` answers.

    Attributes:
        mode: ``discover``, ``scroll``, ``read`` or ``browse``.
        results: discover and browse: best first, or last active first. Scroll and read: the one session, whose
            ``messages`` are the answer.
        truncated: read: rows in the middle are left out.
        complete: false when a budget ended the search. note: a sentence for people, or ``""``.
    """

    mode: str
    query: str = ""
    results: tuple[FoundSession, ...] = ()
    truncated: bool = False
    complete: bool = True
    note: str = ""


class Searching(Protocol):
    """The part of the facade that finds what was said."""

    def session_search(
        self,
        query: str = "",
        *,
        session_id: str = "",
        around_message_id: int | None = None,
        window: int = 5,
        limit: int = 3,
        sort: str = RELEVANCE,
        role_filter: Sequence[str] = (),
        source: str | None = None,
        since: int | None = None,
        until: int | None = None,
        detail: str = "adaptive",
        own: LineageId | None = None,
        principal: Principal | None = None,
        budget_s: float = 2.0,
    ) -> SearchAnswer:
        """Find, look around, read or browse. Blocks up to the budget, and for what is shown.

        A session with a row: the rows around it. A session alone: its rows. A query: the best row of each
        conversation, with its neighbourhood. Nothing: conversations, last active first. Numbers out of range are
        brought into it.

        :param query: see :mod:`hermes_hookspecs.text.parsing`.
        :param session_id: reference of a session: id, title or beginning of an id.
        :param window: rows on each side, 1-20. limit: conversations, 1-100. sort: relevance, newest or oldest.
        :param role_filter: which rows count and are shown; empty for user and assistant. source: platform.
        :param since: UTC milliseconds of a row (browse: of the last activity), from; until: before.
        :param detail: ``adaptive``: the more results, the less of each; ``full``.
        :param own: lineage of the caller; what is live in its context is left out.
        :param principal: on whose behalf; ``None`` for the operator.
        :raises ValueError: the query or a choice is wrong; the text says what.
        :raises SessionError: no such session, none of the principal's, or the row is not in it.
        """
        ...

    @property
    def search_index(self) -> SearchIndex:
        """Return what searches, opened at the first use: a plugin's index, or a scan where none works."""
        ...


def plain(answer: SearchAnswer) -> dict[str, object]:
    """Return an answer as plain data for JSON: ``success``, ``mode``, ``query``, ``results``, ``count``, and the rest.

    Names are those that the original's tool gives, times UTC milliseconds; hits in snippets stand between ``>>>`` and
    ``<<<``. What a mode does not have is left out.
    """
    data: dict[str, object] = {"success": True, "mode": answer.mode}
    if answer.query:
        data["query"] = answer.query
    data["results"] = [_plain_session(one, answer.mode) for one in answer.results]
    data["count"] = len(answer.results)
    if answer.mode == READ:
        data["truncated"] = answer.truncated
    data["complete"] = answer.complete
    if answer.note:
        data["note"] = answer.note
    return data


def _plain_session(one: FoundSession, mode: str) -> dict[str, object]:
    data: dict[str, object] = {
        "session_id": one.session_id,
        "lineage_id": one.lineage_id,
        "parent_session_id": one.parent_session_id,
        "title": one.title,
        "source": one.source,
        "model": one.model,
        "started_at": one.started_at,
        "last_active": one.last_active,
        "message_count": one.message_count,
        "preview": one.preview,
    }
    if mode == BROWSE:
        return data
    if one.match_message_id is not None:
        data |= {"match_message_id": one.match_message_id, "matched_role": one.matched_role}
        data |= {"messages_before": one.messages_before, "messages_after": one.messages_after}
    if mode == DISCOVER:
        data |= {"snippet": one.snippet.replace(HIT_START, ">>>").replace(HIT_END, "<<<"), "score": one.score}
        if one.by_title:
            data["by_title"] = True
        data |= {"bookend_start": [_plain_message(row) for row in one.bookend_start]}
        data |= {"bookend_end": [_plain_message(row) for row in one.bookend_end]}
    data["messages"] = [_plain_message(row) for row in one.messages]
    return data


def _plain_message(row: ShownMessage) -> dict[str, object]:
    data: dict[str, object] = {
        "id": row.message_id,
        "session_id": row.session_id,
        "role": row.role,
        "timestamp": row.timestamp,
        "content": row.content,
    }
    if row.tool_name is not None:
        data["tool_name"] = row.tool_name
    if row.tool_calls:
        data["tool_calls"] = [{"name": name, "arguments": arguments} for name, arguments in row.tool_calls]
    if row.cut:
        data["cut"] = True
    if row.anchor:
        data["anchor"] = True
    return data
