"""What a store holds that served Slack before keys held the workspace: for tests of whoever migrates one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.ids import SessionKey, new_lineage_id, new_session_id
from hermes_hookspecs.operations import GetOrCreate
from hermes_hookspecs.principal import owner_of
from hermes_hookspecs.source import KeyPolicy, SessionSource

if TYPE_CHECKING:
    from hermes_hookspecs.ports.app import App
    from hermes_hookspecs.sessions import SessionEntry

__all__ = ["old_key", "old_session", "slack_source"]


def slack_source(
    scope_id: str | None, chat_id: str = "D9", chat_type: str = "dm", *, user_id: str = "U5", thread_id: str = ""
) -> SessionSource:
    """Return a source of Slack; ``scope_id`` is ``None`` for what was recorded before there were any."""
    return SessionSource(
        platform="slack",
        scope_id=scope_id,
        chat_id=chat_id,
        chat_type=chat_type,
        user_id=user_id,
        thread_id=thread_id,
    )


def old_key(source: SessionSource) -> SessionKey:
    """Return the key that a source had before keys held the workspace, of ids that need no encoding."""
    parts = [f"agent:{source.profile}:slack:{source.chat_type}", f"chat={source.chat_id}"]
    if source.thread_id:
        parts.append(f"thread={source.thread_id}")
    elif source.chat_type != "dm":
        parts.append(f"user={source.user_id}")
    return SessionKey(":".join(parts))


def old_session(app: App, source: SessionSource, text: str = "alpha") -> SessionEntry:
    """Make a session behind :func:`old_key` and say ``text`` in it; return it."""
    now = app.clock.now()
    operation = GetOrCreate(
        key=old_key(source),
        key_version=0,
        source=source,
        owner=owner_of(source, shared=bool(source.thread_id)),
        policy=KeyPolicy(),
        shared=bool(source.thread_id),
        now=now,
        session_id=new_session_id(now),
        lineage_id=new_lineage_id(now),
    )
    entry = app.store.apply(operation)
    app.ask(text, source, entry=entry, agent=lambda _: "noted")
    return entry
