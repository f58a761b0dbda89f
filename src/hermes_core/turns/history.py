"""The past, as an agent may see it: other lineages of the turn's principal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.messages import USER
from hermes_hookspecs.sessions import SessionFilter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import SessionSummary

__all__ = ["ScanningHistory"]

_MOST_NEEDLES = 16
_SCANNED = 200


class ScanningHistory:
    """Finds rows by reading them (:class:`~hermes_hookspecs.ports.agent.History`); needs no index.

    :param lineage_id: the turn's own lineage, which is in the context already and is left out.
    """

    def __init__(self, store: StoreReader, principal: Principal, lineage_id: LineageId) -> None:
        self._store = store
        self._principal = principal
        self._own = lineage_id

    def search(self, text: str, *, limit: int = 5) -> Sequence[tuple[SessionSummary, Message]]:
        """Return one row of each other lineage that holds every word of ``text``, the newest lineage first.

        What a person said counts more than an answer that only repeats it.
        """
        needles = text.split()[:_MOST_NEEDLES]
        if not needles:
            return ()
        rows = self._store.scan(needles, self._principal, exclude=self._own, limit=_SCANNED)
        best: dict[LineageId, Message] = {}
        for row in rows:
            known = best.setdefault(row.lineage_id, row)
            if row.role == USER and known.role != USER:
                best[row.lineage_id] = row
        found: list[tuple[SessionSummary, Message]] = []
        for lineage_id, row in best.items():
            if len(found) == limit:
                break
            summary = self._store.summary(lineage_id, self._principal)
            if summary is not None:
                found.append((summary, row))
        return found

    def recent(self, *, limit: int = 5) -> Sequence[SessionSummary]:
        """Return other lineages with at least one row, last active first."""
        where = SessionFilter(archived=None, empty=False)
        summaries = self._store.summaries(self._principal, where=where, limit=limit + 1)
        return [one for one in summaries if one.lineage_id != self._own][:limit]
