"""``session_search``: find, look around, read and browse the conversations that a principal may see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.search.neighbours import Neighbours
from hermes_core.search.shown import show
from hermes_core.sessions.resolve import resolve
from hermes_hookspecs.errors import SessionError
from hermes_hookspecs.messages import ASSISTANT, ROLES, USER
from hermes_hookspecs.ports.search import (
    BROWSE,
    DISCOVER,
    READ,
    RELEVANCE,
    SCROLL,
    SORTS,
    FoundSession,
    SearchAnswer,
    SearchQuery,
)
from hermes_hookspecs.sessions import SessionFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.search import SearchHit, SearchIndex
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session, SessionSummary

__all__ = ["MOST_RESULTS", "MOST_WINDOW", "SearchRequest", "SessionSearch"]

MOST_RESULTS = 100
MOST_WINDOW = 20
_BOOKEND = 3
_READ_WHOLE, _READ_HEAD, _READ_TAIL = 30, 20, 10
_READ_AT_ONCE = 500
_PAGE = 50


@attrs.frozen(kw_only=True)
class SearchRequest:
    """What is asked for. Numbers out of range are brought into it.

    Attributes:
        query: see :mod:`hermes_hookspecs.text.parsing`; blank for none.
        session_id: reference of a session: id, title or prefix; with ``around_message_id``: look around that row.
        window: rows on each side, 1-20. limit: conversations, 1-100. sort: ``relevance``, ``newest``, ``oldest``.
        role_filter: which rows count and are shown; empty for user and assistant.
        source: platform. since, until: UTC milliseconds of rows (browse: of the last activity), from and before.
        detail: ``adaptive``: the more results, the less of each; ``full``.
        own: lineage of the caller: what is live in its context is left out.
    """

    query: str = ""
    session_id: str = ""
    around_message_id: int | None = None
    window: int = 5
    limit: int = 3
    sort: str = RELEVANCE
    role_filter: tuple[str, ...] = ()
    source: str | None = None
    since: int | None = None
    until: int | None = None
    detail: str = "adaptive"
    own: LineageId | None = None
    budget_s: float = 2.0

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles that count."""
        return self.role_filter or (USER, ASSISTANT)


class SessionSearch:
    """Answers requests on behalf of one principal."""

    def __init__(self, store: StoreReader, index: SearchIndex, principal: Principal) -> None:
        self._store = store
        self._index = index
        self._principal = principal

    def answer(self, request: SearchRequest) -> SearchAnswer:
        """Return what was asked for: a session with a row to scroll, a session to read, a query to discover, or browse.

        :raises ValueError: a query with a real mistake, an unknown role, sort or detail, a row without its session, a
            session beside a query, a time range that ends before it begins.
        :raises SessionError: no such session, or the row is not in it; what is somebody else's is not there.
        """
        _check(request)
        if request.session_id.strip():
            resolved = resolve(self._store, request.session_id, self._principal)
            if request.around_message_id is not None:
                return self._scroll(request, resolved.session)
            return self._read(request, resolved.session)
        if request.query.strip():
            return self._discover(request)
        return self._browse(request)

    # --- the four modes

    def _discover(self, request: SearchRequest) -> SearchAnswer:
        limit = _within(request.limit, MOST_RESULTS)
        query = SearchQuery(
            text=request.query,
            limit=limit,
            sort=request.sort,
            roles=request.roles,
            source=request.source,
            since=request.since,
            until=request.until,
            exclude=request.own,
            exclude_from=self._live_from(request.own),
            budget_s=request.budget_s,
        )
        result = self._index.search(query, self._principal)
        depth, most = _detail(request, len(result.hits))
        found = (self._around(hit, request.roles, depth, most) for hit in result.hits)
        return SearchAnswer(
            mode=DISCOVER,
            query=request.query,
            results=tuple(one for one in found if one is not None),
            complete=result.complete,
            note=result.note,
        )

    def _around(self, hit: SearchHit, roles: Sequence[str], depth: int, most: int) -> FoundSession | None:
        """Return a hit with its neighbourhood; ``None`` where it was deleted in the meantime."""
        near = Neighbours(self._store, hit.lineage_id, self._principal, roles)
        rows = near.around(hit.message_id, depth)
        anchor = next((row for row in rows if row.id == hit.message_id), None)
        shell = self._found(hit.lineage_id, hit.session_id)
        if anchor is None or shell is None:
            return None
        first, last = rows[0].id, rows[-1].id
        start = tuple(row for row in near.first(_BOOKEND) if row.id < first)
        end = tuple(row for row in near.last(_BOOKEND) if row.id > last)
        return attrs.evolve(
            shell,
            match_message_id=anchor.id,
            matched_role=anchor.role,
            snippet=hit.snippet,
            score=hit.score,
            by_title=hit.by_title,
            messages=show(rows, most=most, anchor=anchor.id),
            messages_before=near.count_before(first),
            messages_after=near.count_after(last),
            bookend_start=show(start, most=most),
            bookend_end=show(end, most=most),
        )

    def _scroll(self, request: SearchRequest, session: Session) -> SearchAnswer:
        anchor_id: MessageId = _message_id(request.around_message_id)
        near = Neighbours(self._store, session.lineage_id, self._principal, request.roles)
        rows = near.around(anchor_id, _within(request.window, MOST_WINDOW))
        anchor = next((row for row in rows if row.id == anchor_id), None)
        shell = None if anchor is None else self._found(session.lineage_id, anchor.session_id)
        if anchor is None or shell is None:
            raise SessionError(f"message {anchor_id} is not in session {session.id}, or was taken back")
        before, after = near.count_before(rows[0].id), near.count_after(rows[-1].id)
        notes = []
        if anchor.session_id != session.id:
            notes.append(f"message {anchor_id} is in {anchor.session_id}, a part of the same conversation")
        if not before:
            notes.append("the conversation begins here")
        if not after:
            notes.append("the conversation ends here")
        found = attrs.evolve(
            shell,
            match_message_id=anchor.id,
            matched_role=anchor.role,
            messages=show(rows, most=2000, anchor=anchor.id),
            messages_before=before,
            messages_after=after,
        )
        return SearchAnswer(mode=SCROLL, results=(found,), note="; ".join(notes))

    def _read(self, request: SearchRequest, session: Session) -> SearchAnswer:
        rows = self._segment_head(session, request.roles)
        truncated = len(rows) > _READ_WHOLE
        if truncated:
            head = rows[:_READ_HEAD]
            tail = Neighbours(self._store, session.lineage_id, self._principal, request.roles).last(
                _READ_TAIL, session_id=session.id
            )
            rows = [*head, *(row for row in tail if row.id > head[-1].id)]
        shell = self._found(session.lineage_id, session.id)
        if shell is None:
            raise SessionError(f"session {session.id} was deleted just now")
        found = attrs.evolve(shell, messages=show(rows, most=2000))
        note = f"rows between the first {_READ_HEAD} and the last {_READ_TAIL} are left out" if truncated else ""
        return SearchAnswer(mode=READ, results=(found,), truncated=truncated, note=note)

    def _segment_head(self, session: Session, roles: Sequence[str]) -> list[Message]:
        """Return the first rows of a segment, one more than are read as a whole."""
        rows: list[Message] = []
        after: MessageId | None = None
        while len(rows) <= _READ_WHOLE:
            page = self._store.messages(
                session.lineage_id, self._principal, session_id=session.id, after=after, limit=_READ_AT_ONCE
            )
            rows += (row for row in page if row.role in roles)
            if len(page) < _READ_AT_ONCE:
                break
            after = page[-1].id
        return rows[: _READ_WHOLE + 1]

    def _browse(self, request: SearchRequest) -> SearchAnswer:
        limit = _within(request.limit, MOST_RESULTS)
        where = SessionFilter(source=request.source, empty=False)
        found: list[FoundSession] = []
        while True:
            page = self._store.summaries(self._principal, where=where, limit=_PAGE)
            for one in page:
                if request.since is not None and one.last_activity < request.since:
                    return SearchAnswer(mode=BROWSE, results=tuple(found))
                if one.lineage_id == request.own or (request.until is not None and one.last_activity >= request.until):
                    continue
                found.append(self._from_summary(one, one.session_id, self._parent(one.session_id)))
                if len(found) == limit:
                    return SearchAnswer(mode=BROWSE, results=tuple(found))
            if len(page) < _PAGE:
                return SearchAnswer(mode=BROWSE, results=tuple(found))
            where = attrs.evolve(where, before=(page[-1].last_activity, page[-1].lineage_id))

    # --- parts

    def _live_from(self, own: LineageId | None) -> MessageId | None:
        """Return the first row of a lineage that is in its context now; ``None``: all of them are.

        In the context are the rows of the tip and, after a compression, those that it kept.
        """
        lineage = None if own is None else self._store.lineage(own, self._principal)
        tip = None if lineage is None else self._store.session(lineage.tip, self._principal)
        if tip is None or tip.parent_session_id is None:
            return None
        first = self._store.messages(tip.lineage_id, self._principal, session_id=tip.id, limit=1)
        live = [row.id for row in first]
        if tip.kept_from is not None:
            live.append(tip.kept_from)
        if live:
            return min(live)
        last = self._store.last_messages(tip.lineage_id, self._principal, count=1)
        return _message_id(last[0].id + 1) if last else None

    def _found(self, lineage_id: LineageId, session_id: SessionId) -> FoundSession | None:
        summary = self._store.summary(lineage_id, self._principal)
        return None if summary is None else self._from_summary(summary, session_id, self._parent(session_id))

    def _parent(self, session_id: SessionId) -> SessionId | None:
        session = self._store.session(session_id, self._principal)
        return None if session is None else session.parent_session_id

    @staticmethod
    def _from_summary(summary: SessionSummary, session_id: SessionId, parent: SessionId | None) -> FoundSession:
        return FoundSession(
            lineage_id=summary.lineage_id,
            session_id=session_id,
            parent_session_id=parent,
            title=summary.title,
            source=summary.source,
            model=summary.model,
            started_at=summary.started_at,
            last_active=summary.last_activity,
            message_count=summary.message_count,
            preview=summary.preview,
        )


def _check(request: SearchRequest) -> None:
    unknown = [role for role in request.role_filter if role not in ROLES]
    if unknown:
        raise ValueError(f"there is no role {unknown[0]!r}; rows are of {', '.join(ROLES)}")
    if request.sort not in SORTS:
        raise ValueError(f"results are sorted by {', '.join(SORTS)}, not {request.sort!r}")
    if request.detail not in {"adaptive", "full"}:
        raise ValueError(f"detail is adaptive or full, not {request.detail!r}")
    if request.around_message_id is not None and not request.session_id.strip():
        raise ValueError("to look around a message, name its session too")
    if request.query.strip() and request.session_id.strip() and request.around_message_id is None:
        raise ValueError("a query looks through all conversations and a session reads that one: give one of the two")
    if request.since is not None and request.until is not None and request.since >= request.until:
        raise ValueError("since is not before until: no row can lie between them")


def _detail(request: SearchRequest, count: int) -> tuple[int, int]:
    """Return how many rows to show on each side of a hit, and how many characters of each."""
    window = _within(request.window, MOST_WINDOW)
    if request.detail == "full" or count <= 1:
        return window, 2000
    if count <= 3:
        return window, 600
    return min(window, 1), 200


def _within(number: int, most: int) -> int:
    return min(max(number, 1), most)


def _message_id(number: int | None) -> MessageId:
    from hermes_hookspecs.ids import MessageId

    return MessageId(0 if number is None else number)
