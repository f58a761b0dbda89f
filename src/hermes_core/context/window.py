"""What the model is sent: a pure function of stored rows (``design.md`` section 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.context.repair import repair_message_sequence
from hermes_hookspecs.messages import SYSTEM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session

__all__ = ["read_rows", "sent_text", "window_of"]

_BRACKETS = {ord("["): "(", ord("]"): ")"}


def read_rows(store: StoreReader, session: Session, principal: Principal) -> Sequence[Message]:
    """Return the rows of a session's context, oldest first: of its lineage from ``kept_from`` on, and its own."""
    from hermes_hookspecs.ids import MessageId

    after = None if session.kept_from is None else MessageId(session.kept_from - 1)
    return store.messages(session.lineage_id, principal, after=after)


def window_of(session: Session, rows: Sequence[Message]) -> tuple[Message, ...]:
    """Return what is sent: the frozen system text first, then the rows, repaired, each as it was sent before."""
    sent = [row if row.sent is None else attrs.evolve(row, content=row.sent) for row in repair_message_sequence(rows)]
    if session.system_prompt and sent:
        head = attrs.evolve(
            sent[0],
            role=SYSTEM,
            content=session.system_prompt,
            sent=None,
            tool_calls=(),
            tool_call_id=None,
            tool_name=None,
            token_count=None,
            finish_reason=None,
            reasoning=None,
            attachments=(),
            kind="",
            inbox_id=None,
            turn_id=None,
        )
        sent.insert(0, head)
    return tuple(sent)


def sent_text(item: InboxItem, *, shared: bool) -> str | None:
    """Return a user row's text as it is sent, ``None`` where that is the text itself.

    In a session shared by several people the sender's name stands before the text, on one line, so that a display
    name cannot forge a second message.
    """
    if not shared:
        return None
    label = _label(item.source.user_name) or _label(item.source.participant)
    return f"[{label}] {item.text}" if label else None


def _label(name: str | None) -> str:
    """Return a name on one line, without the brackets that end it, at most 80 characters."""
    printable = "".join(c if c.isprintable() else " " for c in name or "")
    return " ".join(printable.translate(_BRACKETS).split())[:80]
