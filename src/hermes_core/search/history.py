"""The past, as an agent may see it, found by whatever index there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ports.search import RELEVANCE, SearchQuery
from hermes_hookspecs.sessions import SessionFilter
from hermes_hookspecs.text.parsing import MOST_CHARACTERS, MOST_WORDS, QueryError, parse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ids import LineageId, MessageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.search import SearchAnswer, SearchIndex
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionSummary

__all__ = ["SearchingHistory", "as_words"]


class SearchingHistory:
    """Other lineages of a turn's principal (:class:`~hermes_hookspecs.ports.agent.History`).

    :param index: gives what searches, when it is first needed.
    :param lineage_id: the turn's own lineage, which is in the context already and is left out.
    """

    def __init__(
        self, store: StoreReader, index: Callable[[], SearchIndex], principal: Principal, lineage_id: LineageId
    ) -> None:
        self._store = store
        self._index = index
        self._principal = principal
        self._own = lineage_id

    def search(self, text: str, *, limit: int = 5) -> Sequence[tuple[SessionSummary, Message]]:
        """Return the best row of each other lineage, best first; text that is no query is looked for word by word."""
        query = as_words(text)
        if not query:
            return ()
        found = self._index().search(SearchQuery(text=query, limit=limit, exclude=self._own), self._principal)
        pairs: list[tuple[SessionSummary, Message]] = []
        for hit in found.hits:
            summary = self._store.summary(hit.lineage_id, self._principal)
            row = self._row(hit.lineage_id, hit.message_id)
            if summary is not None and row is not None:
                pairs.append((summary, row))
        return pairs

    def recent(self, *, limit: int = 5) -> Sequence[SessionSummary]:
        """Return other lineages with at least one row, last active first."""
        where = SessionFilter(archived=None, empty=False)
        summaries = self._store.summaries(self._principal, where=where, limit=limit + 1)
        return [one for one in summaries if one.lineage_id != self._own][:limit]

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
    ) -> SearchAnswer:
        """Find, look around, read or browse, on behalf of the turn's principal."""
        from hermes_core.search.service import SearchRequest, SessionSearch

        request = SearchRequest(
            query=query,
            session_id=session_id,
            around_message_id=around_message_id,
            window=window,
            limit=limit,
            sort=sort,
            role_filter=tuple(role_filter),
            source=source,
            since=since,
            until=until,
            detail=detail,
            own=self._own,
        )
        return SessionSearch(self._store, self._index(), self._principal).answer(request)

    def _row(self, lineage_id: LineageId, message_id: MessageId) -> Message | None:
        from hermes_hookspecs.ids import MessageId

        rows = self._store.messages(lineage_id, self._principal, after=MessageId(message_id - 1), limit=1)
        return next((row for row in rows if row.id == message_id), None)


def as_words(text: str) -> str:
    """Return a text if it is a query, else its words without what a query would take for more; ``""`` for nothing."""
    try:
        parse(text)
    except QueryError:
        bare = text[:MOST_CHARACTERS].translate(str.maketrans('"()', "   ")).lower()
        words = [word for word in (one.lstrip("-") for one in bare.split()) if word][:MOST_WORDS]
        try:
            parse(" ".join(words))
        except QueryError:
            return ""
        return " ".join(words)
    return text
