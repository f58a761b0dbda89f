"""Which index answers: the first that works on the open store, and a scan wherever it does not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import attrs

from hermes_core.search.scan import ScanIndex
from hermes_hookspecs.errors import HermesError, StoreBusy, StoreFull, StoreOutcomeUnknown, StoreStopped
from hermes_hookspecs.text.parsing import QueryError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_hookspecs.ports.care import Finding
    from hermes_hookspecs.ports.search import SearchIndex, SearchQuery, SearchResult, SearchSource
    from hermes_hookspecs.ports.store import Store
    from hermes_hookspecs.principal import Principal

__all__ = ["SafeIndex", "choose_index"]

_OF_THE_STORE = (StoreBusy, StoreFull, StoreOutcomeUnknown, StoreStopped)
"""What says nothing about the index: making it anew would not help, and takes room."""
_MOST_SAID = 400
"""Characters of a plugin's error that are passed on."""


def choose_index(store: Store, sources: Sequence[SearchSource]) -> tuple[SearchIndex, Sequence[str]]:
    """Return the index of the first source that opens on this store, else a scan, and a notice per failed source.

    Whatever a source raises is its own failure: search goes on without it.
    """
    notices: list[str] = []
    for source in sources:
        if source.backends and store.name not in source.backends:
            continue
        try:
            return SafeIndex(source.open(store), ScanIndex(store)), notices
        except Exception as error:  # noqa: BLE001 - a plugin's index may fail in any way; history stays findable
            notice = (
                f"the search index {source.name!r} cannot be used, so that rows are read one by one: {_short(error)}"
            )
            logging.getLogger(__name__).info("%s", notice)  # INFO: at a terminal the notice itself is shown
            notices.append(notice)
    return ScanIndex(store), notices


class SafeIndex:
    """An index whose failure costs time, never an answer: then the rows themselves are searched.

    After a failure of its own the next :meth:`catch_up` builds the index anew; a full disk or a busy store is none.
    """

    def __init__(self, index: SearchIndex, scan: ScanIndex) -> None:
        self._index = index
        self._scan = scan
        self._failure = ""
        self.name = index.name

    def search(self, query: SearchQuery, principal: Principal) -> SearchResult:
        """Ask the index; scan when it fails, and say so. :raises ValueError: the query is wrong."""
        try:
            return self._index.search(query, principal)
        except QueryError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            self._note(error)
            found = self._scan.search(query, principal)
            note = f"the search index {self.name!r} failed ({_short(error)}); {found.note}"
            if not isinstance(error, _OF_THE_STORE):
                note += "; `hermes search index rebuild` makes it anew"
            return attrs.evolve(found, note=note)

    def catch_up(self, *, budget_s: float) -> int:
        """Let the index catch up, or build it anew after a failure; a failure is logged, and nothing is left."""
        try:
            if self._failure:
                self.rebuild()
            return self._index.catch_up(budget_s=budget_s)
        except Exception as error:  # noqa: BLE001 - as above
            self._note(error)
            return 0

    def rebuild(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the index anew; what it raises is for the person who asked."""
        count = self._index.rebuild(progress=progress)
        self._failure = ""
        return count

    def verify(self) -> Sequence[Finding]:
        """Return what the index finds wrong with itself, or that it could not look."""
        from hermes_hookspecs.ports.care import Finding

        try:
            return self._index.verify()
        except Exception as error:  # noqa: BLE001 - as above
            self._note(error)
            text = f"the index cannot be verified ({_short(error)}); `hermes search index rebuild` makes it anew"
            return (Finding(kind="search-index", subject=self.name, text=text, fixable=True, severity="error"),)

    def status(self) -> Sequence[tuple[str, str | int]]:
        """Return what the index says of itself, and its last failure."""
        try:
            facts = tuple(self._index.status())
        except Exception as error:  # noqa: BLE001 - as above
            self._note(error)
            facts = (("index", self.name),)
        return (*facts, ("failure", self._failure)) if self._failure else facts

    def _note(self, error: Exception) -> None:
        if not isinstance(error, _OF_THE_STORE):
            self._failure = _short(error)
        _log("search index %r failed: %s: %s", self.name, type(error).__name__, error)


def _short(error: Exception) -> str:
    """Return an error on one line; those of ours speak for themselves."""
    said = " ".join(str(error).split())[:_MOST_SAID]
    if said and isinstance(error, HermesError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _log(message: str, *values: object) -> None:
    logging.getLogger(__name__).warning(message, *values)
