"""The port of a search index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import attrs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId, MessageId, SessionId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal

__all__ = ["SearchHit", "SearchIndex", "SearchQuery", "SearchResult", "SearchSource"]


@attrs.frozen(kw_only=True)
class SearchQuery:
    """What is asked. Access and filters come before ``limit``.

    Attributes:
        text: words (AND), OR, NOT, "phrases", prefix*; everything else is text.
        sort: ``relevance``, ``newest`` or ``oldest``. roles: which rows count.
        since, until: UTC milliseconds, from and before. exclude: lineage whose live context is left out.
        budget_s: seconds after which the answer is incomplete rather than late.
    """

    text: str
    limit: int = 3
    sort: str = "relevance"
    roles: tuple[str, ...] = ("user", "assistant")
    source: str | None = None
    since: int | None = None
    until: int | None = None
    exclude: LineageId | None = None
    budget_s: float = 2.0


@attrs.frozen(kw_only=True)
class SearchHit:
    """The best row of one lineage. ``snippet`` marks hits by U+0002 before and U+0003 behind."""

    lineage_id: LineageId
    session_id: SessionId
    message_id: MessageId
    score: float
    snippet: str
    before: tuple[Message, ...] = ()
    after: tuple[Message, ...] = ()


@attrs.frozen(kw_only=True)
class SearchResult:
    """Hits, best first; ``complete`` is false when the budget ended the search early, ``note`` says why."""

    hits: tuple[SearchHit, ...]
    complete: bool
    note: str = ""


class SearchIndex(Protocol):
    """Finds rows of one store."""

    name: str

    def search(self, query: SearchQuery, principal: Principal) -> SearchResult:
        """Return the best row of each lineage that the principal may see. Blocks up to the query's budget.

        :raises ValueError: a query with a real mistake; the text says which.
        """
        ...

    def catch_up(self, *, budget_s: float) -> int:
        """Index what the change feed brought since; return how many changes are left."""
        ...

    def status(self) -> Sequence[tuple[str, str]]:
        """Return facts for people: ``(name, value)``."""
        ...


class SearchSource(Protocol):
    """A kind of index, by name."""

    name: str
    backends: tuple[str, ...]
    """Names of the stores it works on, empty for all."""

    def open(self, store: Store) -> SearchIndex:
        """Return the index of an open store."""
        ...
