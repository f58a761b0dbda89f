"""What each session of a lineage sees, and which of them saw more. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.operations.compression import UNCOMPRESSION

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.sessions import Session

__all__ = ["earlier_view"]


def earlier_view(segments: Sequence[Session]) -> Session | None:
    """Return the session whose context the tip had before its last compression, ``None`` where it sees everything.

    Each compression adds a view on top of the one before, each uncompression takes the top away.

    :param segments: the sessions of a lineage, oldest first.
    """
    ends = {session.id: session.end_reason for session in segments}
    views: list[Session] = []
    for session in segments:
        parent = session.parent_session_id
        if parent is not None and ends.get(parent) == UNCOMPRESSION:
            views = views[:-1] or views
        else:
            views.append(session)
    return views[-2] if len(views) > 1 else None
