"""Accepting messages: redaction at the door, then one transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_core.leases import holder_here
from hermes_hookspecs.inbox import InboxDraft
from hermes_hookspecs.source import Entrance

if TYPE_CHECKING:
    from hermes_core.hooks import Hooks
    from hermes_hookspecs.ids import LineageId, SessionKey
    from hermes_hookspecs.messages import Attachment
    from hermes_hookspecs.source import SessionSource

__all__ = ["entrance_of", "waiting_draft"]


def entrance_of(source: SessionSource) -> Entrance:
    """Return the door a source stands for: a terminal is one of its own, a platform's account is one for everybody."""
    terminal = source.chat_id if source.platform == "cli" else None
    return Entrance(source.platform, source.account_id, terminal)


def waiting_draft(
    hooks: Hooks,
    text: str,
    source: SessionSource,
    *,
    session_key: SessionKey,
    lineage_id: LineageId,
    now: int,
    kind: str = "message",
    attachments: tuple[Attachment, ...] = (),
) -> InboxDraft:
    """Return the row of a message whose sender waits in the same call.

    :raises PluginError: redaction failed; the message is refused.
    """
    entrance = entrance_of(source)
    return InboxDraft(
        session_key=session_key,
        source=source,
        entrance=entrance,
        text=hooks.redact_inbound(text, source),
        accepted_at=now,
        kind=kind,
        attachments=attachments,
        lineage_id=lineage_id,
        waiter=holder_here(entrance, session_key),
    )
