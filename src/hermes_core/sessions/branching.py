"""A conversation gets a second way to go on, and the key of whoever asked leads there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.ids import new_lineage_id, new_session_id
from hermes_hookspecs.operations import Branch
from hermes_hookspecs.principal import owner_of

if TYPE_CHECKING:
    from hermes_core.sessions.desk import SessionDesk
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.source import SessionSource

__all__ = ["branching"]


def branching(
    desk: SessionDesk,
    reader: StoreReader,
    key: SessionKey,
    source: SessionSource,
    lineage_id: LineageId,
    *,
    title: str | None,
    now: int,
) -> Branch:
    """Return the operation that branches a lineage off for whoever speaks from ``source``.

    :raises TitleError: the title is too long, or taken.
    :raises SessionNotFound: no such lineage, or not the principal's.
    """
    origin = reader.lineage(lineage_id, desk.principal(source))
    if origin is None:
        raise SessionNotFound(lineage_id)
    shared = desk.shared(source)
    return Branch(
        key=key,
        key_version=desk.keys.version,
        source=source,
        owner=owner_of(source, shared=shared),
        policy=desk.policy(source),
        shared=shared,
        origin=origin.id,
        expected=origin.tip,
        session_id=new_session_id(now),
        lineage_id=new_lineage_id(now),
        now=now,
        title=desk.check_title(title, source) or origin.title,
    )
