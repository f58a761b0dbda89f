"""The sessions under the names that readers of the original know (``design.md`` section 15)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import SessionNotFound
from hermes_hookspecs.principal import operator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.ids import SessionId, SessionKey
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import SessionEntry
    from hermes_hookspecs.source import SessionSource

__all__ = ["SessionStore"]


class SessionStore:
    """Finds, binds, reads and exports sessions of an open profile. Thread-safe; blocks.

    What it reads it reads as the operator: it is for programs, which decide for themselves whom they show it.

    :param app: the open profile.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    def get_or_create_session(
        self, source: SessionSource, force_new: bool = False, touch_activity: bool = True
    ) -> SessionEntry:
        """Return the session of ``source``: reused unless ``force_new``; callers at once get the same one.

        :param touch_activity: ``False`` for internal events: moves no clock.
        """
        return self._app.get_or_create_session(source, force_new, touch_activity)

    def switch_session(self, session_key: SessionKey, session_id: SessionId) -> SessionEntry:
        """Let a key that has a route lead to the lineage of ``session_id``.

        :raises SessionNotFound: no such session, or no route of that key.
        """
        route = self._app.store.route(session_key)
        session = self._app.store.session(session_id, operator())
        if route is None:
            raise SessionNotFound(session_key)
        if session is None:
            raise SessionNotFound(session_id)
        return self._app.resume_session(route.source, session.lineage_id)

    def load_transcript(self, session_id: SessionId) -> Sequence[Message]:
        """Return the rows of one session, oldest first, as they are stored. :raises SessionNotFound: see there."""
        session = self._app.store.session(session_id, operator())
        if session is None:
            raise SessionNotFound(session_id)
        return self._app.store.messages(session.lineage_id, operator(), session_id=session_id)

    def export_session(self, session_id: SessionId, lineage: bool = False) -> dict[str, object]:
        """Return one session (all segments with ``lineage``) as plain data."""
        return self._app.export_session(session_id, lineage)
