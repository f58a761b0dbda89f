"""What a reference to a session means: one resolver for every command (``design.md`` section 10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import AmbiguousReference, SessionNotFound
from hermes_hookspecs.ports.app import Resolved

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Lineage, Session

__all__ = ["resolve"]

_MOST_CANDIDATES = 1000


def resolve(store: StoreReader, reference: str, principal: Principal) -> Resolved:
    """Return the lineage and segment that ``reference`` names: exact id, else exact title, else unique id prefix.

    A title means the tip of its lineage, and a title with `` #N`` behind it the N-th segment. A prefix that several
    segments of one lineage have means that lineage's tip.

    :raises SessionNotFound: nothing answers to it, or nothing of the principal's; also a blank reference.
    :raises AmbiguousReference: several lineages do; nothing was changed.
    """
    from hermes_hookspecs.ids import SessionId

    wanted = reference.strip()
    if not wanted:
        raise SessionNotFound(reference)
    session = store.session(SessionId(wanted), principal)
    if session is not None:
        return Resolved(lineage=_lineage_of(store, session, principal), session=session, by="id")
    titled = store.lineages_by_title(wanted, principal)
    if titled:
        return _by_title(store, wanted, titled, principal)
    numbered = _by_number(store, wanted, principal)
    if numbered is not None:
        return numbered
    return _by_prefix(store, wanted, principal)


def _by_title(store: StoreReader, title: str, found: Sequence[Lineage], principal: Principal) -> Resolved:
    if len(found) > 1:
        raise AmbiguousReference(title, [(lineage.tip, lineage.title or "") for lineage in found])
    return _tip(store, found[0], principal, "title")


def _by_number(store: StoreReader, title: str, principal: Principal) -> Resolved | None:
    """Return the segment that carries its lineage's title with a number; ``None`` where there is none or several."""
    from hermes_core.sessions.titles import base_of

    base = base_of(title)
    found = () if base == title else store.lineages_by_title(base, principal)
    segments = [one for lineage in found for one in store.segments(lineage.id, principal) if one.title == title]
    if len(segments) != 1:
        return None
    return Resolved(lineage=_lineage_of(store, segments[0], principal), session=segments[0], by="title")


def _by_prefix(store: StoreReader, prefix: str, principal: Principal) -> Resolved:
    found = store.sessions_by_prefix(prefix, principal, limit=_MOST_CANDIDATES)
    if not found:
        raise SessionNotFound(prefix)
    lineages = {session.lineage_id: session for session in found}
    if len(lineages) > 1:
        raise AmbiguousReference(prefix, [(session.id, session.title or "") for session in found])
    if len(found) == 1:
        return Resolved(lineage=_lineage_of(store, found[0], principal), session=found[0], by="prefix")
    return _tip(store, _lineage_of(store, found[0], principal), principal, "prefix")


def _tip(store: StoreReader, lineage: Lineage, principal: Principal, by: str) -> Resolved:
    session = store.session(lineage.tip, principal)
    if session is None:
        raise SessionNotFound(lineage.tip)
    return Resolved(lineage=lineage, session=session, by=by)


def _lineage_of(store: StoreReader, session: Session, principal: Principal) -> Lineage:
    lineage = store.lineage(session.lineage_id, principal)
    if lineage is None:
        raise SessionNotFound(session.id)
    return lineage
