"""What the model is sent: a pure function of stored rows (``design.md`` section 8).

In order: the frozen system text; the session's summary, where it has one; the kept rows of earlier segments and its own
rows, repaired, each as it was sent before; behind a user row with attachments, one message of theirs. That one changes
once: in its own turn it carries the attachments, so that an agent can send their bytes, from then on their text alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.context.described import text_of
from hermes_core.context.labels import label_of
from hermes_core.context.repair import repaired
from hermes_hookspecs.messages import KIND_ATTACHMENTS, KIND_SUMMARY, SYSTEM, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.context import Repair
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.ports.store import StoreReader
    from hermes_hookspecs.principal import Principal
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.turns import Turn

__all__ = ["Window", "make_window", "read_rows", "sent_text", "window_of"]


@attrs.frozen(kw_only=True)
class Window:
    """What is sent, and how it came about.

    Attributes:
        messages: what is sent, oldest first. rows: what it was made of, the summary first, without what was left out.
        repairs: in order of their rows.
    """

    messages: tuple[Message, ...]
    rows: tuple[Message, ...]
    repairs: tuple[Repair, ...]


def read_rows(store: StoreReader, session: Session, principal: Principal) -> Sequence[Message]:
    """Return the rows of a session's context, oldest first: of its lineage from ``kept_from`` on, and its own."""
    from hermes_hookspecs.ids import MessageId

    after = None if session.kept_from is None else MessageId(session.kept_from - 1)
    return store.messages(session.lineage_id, principal, after=after)


def window_of(session: Session, rows: Sequence[Message], turn: Turn | None = None) -> tuple[Message, ...]:
    """Return what is sent, see :func:`make_window`."""
    return make_window(session, rows, turn).messages


def make_window(session: Session, rows: Sequence[Message], turn: Turn | None = None) -> Window:
    """Return what is sent.

    :param rows: as :func:`read_rows` returns them. turn: the one that runs: the attachments of its messages are its
        inputs; ``None``: there is none, all stand as text.
    """
    used = _in_context(session, rows)
    fixed, repairs = repaired(used)
    sent: list[Message] = []
    for row in fixed:
        said = _as_sent(row)
        if row.role != USER or not row.attachments:
            sent.append(said)
            continue
        if said.content:  # a picture without a word is one message
            sent.append(attrs.evolve(said, attachments=()))
        sent.append(_attachments_of(row, live=turn is not None and _is_of(row, turn)))
    if session.system_prompt and sent:
        sent.insert(0, _bare(sent[0], SYSTEM, session.system_prompt))
    return Window(messages=tuple(sent), rows=used, repairs=repairs)


def sent_text(item: InboxItem, *, shared: bool) -> str | None:
    """Return a user row's text as it is sent, ``None`` where that is the text itself.

    In a session shared by several people the sender's name stands before the text, on one line, so that a display
    name cannot forge a second message.

    :param shared: what the key builder said of the message's key: the function that decides where it goes.
    """
    if not shared:
        return None
    label = label_of(item.source.user_name) or label_of(item.source.participant)
    return f"[{label}] {item.text}" if label else None


def _in_context(session: Session, rows: Iterable[Message]) -> tuple[Message, ...]:
    """Return the rows that count, the session's own summary first; a summary of another segment is not its own."""
    summaries: list[Message] = []
    others: list[Message] = []
    for row in rows:
        if row.kind != KIND_SUMMARY:
            others.append(row)
        elif row.session_id == session.id:
            summaries.append(row)
    return (*summaries[:1], *others)


def _as_sent(row: Message) -> Message:
    """Return a row with the text that was sent; a summary in a user's voice: what it quotes gains no authority."""
    role = USER if row.kind == KIND_SUMMARY else row.role
    if row.sent is None and role == row.role:
        return row
    return attrs.evolve(row, role=role, content=row.content if row.sent is None else row.sent)


def _is_of(row: Message, turn: Turn) -> bool:
    """Return whether a turn answers a user row: its own, or one of a turn before it that is tried again."""
    return row.turn_id == turn.id or (row.inbox_id is not None and row.inbox_id in turn.inbox_ids)


def _attachments_of(row: Message, *, live: bool) -> Message:
    """Return the message of a user row's attachments: their text, and in their own turn what they are."""
    content = "\n".join(text_of(one) for one in row.attachments)
    message = _bare(row, USER, content)
    return attrs.evolve(
        message, kind=KIND_ATTACHMENTS, turn_id=row.turn_id, attachments=row.attachments if live else ()
    )


def _bare(row: Message, role: str, content: str) -> Message:
    """Return a message at the place of a row that has nothing else of it."""
    return attrs.evolve(
        row,
        role=role,
        content=content,
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
