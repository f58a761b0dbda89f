"""Where an open profile is searched: opens the index when it is first needed, and answers on anybody's behalf."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from hermes_hookspecs.ports.search import RELEVANCE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.ports.search import SearchAnswer, SearchIndex, SearchSource
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal

__all__ = ["SearchDesk"]


class SearchDesk:
    """Search of one profile (:class:`~hermes_hookspecs.ports.search.Searching`). Thread-safe.

    :param store: gives the store. sources: asks the plugins for kinds of index. tell: takes a line for people.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        sources: Callable[[], Sequence[SearchSource]],
        tell: Callable[[str], None],
    ) -> None:
        self._store = store
        self._sources = sources
        self._tell = tell
        self._lock = Lock()
        self._index: SearchIndex | None = None

    @property
    def search_index(self) -> SearchIndex:
        """Return what searches, opened at the first use."""
        with self._lock:
            if self._index is None:
                from hermes_core.search.choice import choose_index

                self._index, notices = choose_index(self._store(), self._sources())
                for notice in notices:
                    self._tell(notice)
            return self._index

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
        """Find, look around, read or browse."""
        from hermes_core.search.service import SearchRequest, SessionSearch
        from hermes_hookspecs.principal import operator

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
            own=own,
            budget_s=budget_s,
        )
        whose = operator() if principal is None else principal
        return SessionSearch(self._store(), self.search_index, whose).answer(request)
