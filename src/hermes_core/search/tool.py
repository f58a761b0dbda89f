"""``session_search`` as agents call it: JSON in, JSON out, never an exception for a mistake of the model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from hermes_core.search.service import SearchRequest
from hermes_hookspecs.errors import HermesError
from hermes_hookspecs.ports.search import RELEVANCE, plain

if TYPE_CHECKING:
    from hermes_core.search.service import SessionSearch
    from hermes_hookspecs.ids import LineageId

__all__ = ["session_search"]

_MOST_RESULTS = 10


def session_search(
    search: SessionSearch,
    *,
    query: str = "",
    session_id: str = "",
    around_message_id: int | None = None,
    window: int = 5,
    limit: int = 3,
    sort: str = RELEVANCE,
    role_filter: str = "",
    source: str = "",
    since: int | None = None,
    until: int | None = None,
    detail: str = "adaptive",
    own: LineageId | None = None,
) -> str:
    """Return the JSON text of an answer; a mistake gives ``{"success": false, "error": ...}``.

    :param limit: 1-10, brought into range like ``window`` (1-20). role_filter: roles joined by commas; blank for user
        and assistant. own: lineage of the turn that asks.
    """
    request = SearchRequest(
        query=query,
        session_id=session_id,
        around_message_id=around_message_id,
        window=window,
        limit=min(limit, _MOST_RESULTS),
        sort=sort,
        role_filter=tuple(role.strip() for role in role_filter.split(",") if role.strip()),
        source=source or None,
        since=since,
        until=until,
        detail=detail,
        own=own,
    )
    try:
        data = plain(search.answer(request))
    except (HermesError, ValueError) as error:
        data = {"success": False, "error": str(error)}
    return json.dumps(data, ensure_ascii=False)
