"""The outgoing copy of a transcript, made legal for any model.

Works on what is sent and never on rows. Idempotent, and monotone: for any turn boundary *n*, the repair of the first
*n* rows is a prefix of the repair of more of them, so the prompt's prefix never changes. That is why rows merge only
inside one turn, and why a call is answered right behind its row or not at all.

Rules: a result without an open call goes, and so does a second result of one call; a call that is not answered before
the next row of another kind gets :data:`~hermes_hookspecs.messages.INTERRUPTED_RESULT`; user rows that follow each
other inside one turn become one, joined by a blank line; rows that are for people only are left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.messages import ASSISTANT, INTERRUPTED_RESULT, KIND_INTERRUPTED, KIND_NOTE, TOOL, USER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.messages import Message, ToolCall

__all__ = ["repair_message_sequence"]


def repair_message_sequence(messages: Iterable[Message]) -> list[Message]:
    """Return a legal copy of ``messages``, oldest first; the rows given are not touched.

    The last row's open calls stay open when nothing follows: their turn may still be running.
    """
    sent: list[Message] = []
    open_calls: dict[str, ToolCall] = {}
    for row in messages:
        if row.kind == KIND_NOTE or row.hidden:
            continue
        if row.role == TOOL:
            if row.tool_call_id is not None and open_calls.pop(row.tool_call_id, None) is not None:
                sent.append(row)
            continue
        if open_calls:
            sent.extend(_unanswered(sent[-1], open_calls.values()))
            open_calls = {}
        if row.role == USER and sent and _same_turn(sent[-1], row):
            sent[-1] = _joined(sent[-1], row)
            continue
        sent.append(row)
        if row.role == ASSISTANT:
            open_calls = {call.id: call for call in row.tool_calls}
    return sent


def _unanswered(last: Message, calls: Iterable[ToolCall]) -> list[Message]:
    """Return synthetic results that stand right behind the last answered one."""
    return [
        attrs.evolve(
            last,
            role=TOOL,
            content=INTERRUPTED_RESULT,
            sent=None,
            tool_calls=(),
            tool_call_id=call.id,
            tool_name=call.name,
            kind=KIND_INTERRUPTED,
            reasoning=None,
            finish_reason=None,
            token_count=None,
            attachments=(),
            inbox_id=None,
        )
        for call in calls
    ]


def _same_turn(earlier: Message, later: Message) -> bool:
    return earlier.role == USER and later.turn_id is not None and earlier.turn_id == later.turn_id


def _joined(earlier: Message, later: Message) -> Message:
    return attrs.evolve(
        earlier,
        content=f"{earlier.content}\n\n{later.content}",
        sent=f"{_as_sent(earlier)}\n\n{_as_sent(later)}",
        attachments=earlier.attachments + later.attachments,
    )


def _as_sent(row: Message) -> str:
    return row.content if row.sent is None else row.sent
