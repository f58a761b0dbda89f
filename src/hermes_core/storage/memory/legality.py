"""Which rows may follow which: a result answers an open call, once, and nothing comes between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import IllegalMessage
from hermes_hookspecs.messages import ASSISTANT, ROLES, TOOL, USER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.messages import Message, MessageDraft, ToolCall

__all__ = ["check_rows", "check_steered", "check_stored_once", "open_calls"]


def open_calls(rows: Iterable[Message], turn_id: TurnId) -> dict[str, ToolCall]:
    """Return the unanswered calls of a turn's newest assistant row with calls, by id, in order of the calls."""
    calls: dict[str, ToolCall] = {}
    for row in rows:
        if row.turn_id != turn_id:
            continue
        if row.tool_calls:
            calls = {call.id: call for call in row.tool_calls}
        elif row.role == TOOL:
            calls.pop(row.tool_call_id or "", None)
    return calls


def check_rows(calls: Mapping[str, ToolCall], drafts: Iterable[MessageDraft]) -> dict[str, ToolCall]:
    """Return the calls that are open behind ``drafts``, where ``calls`` are open before them.

    :raises IllegalMessage: a row would break the transcript.
    """
    calls = dict(calls)
    for draft in drafts:
        if draft.role not in ROLES:
            raise IllegalMessage(f"there is no role {draft.role!r}; there are {', '.join(ROLES)}")
        if draft.tool_calls and draft.role != ASSISTANT:
            raise IllegalMessage(f"a {draft.role} row cannot ask for tools")
        if draft.role == TOOL:
            if draft.tool_call_id is None or draft.tool_call_id not in calls:
                raise IllegalMessage(f"no open call has the id {draft.tool_call_id!r} that this result answers")
            del calls[draft.tool_call_id]
            continue
        if calls:
            raise IllegalMessage(f"a {draft.role} row cannot come before the results of {', '.join(calls)}")
        calls = _calls_of(draft)
    return calls


def check_stored_once(rows: Iterable[Message], drafts: Iterable[MessageDraft]) -> None:
    """Check that no accepted message gets a second user row in its lineage.

    :raises IllegalMessage: one of ``drafts`` holds a message that ``rows`` or an earlier draft holds.
    """
    stored = {row.inbox_id for row in rows}
    for draft in drafts:
        if draft.inbox_id is None:
            continue
        if draft.inbox_id in stored:
            raise IllegalMessage(f"the accepted message {draft.inbox_id} is stored already; it is stored once")
        stored.add(draft.inbox_id)


def check_steered(drafts: Iterable[MessageDraft]) -> None:
    """Check that only user rows hold accepted messages.

    :raises IllegalMessage: another row names one.
    """
    for draft in drafts:
        if draft.inbox_id is not None and draft.role != USER:
            raise IllegalMessage(f"a {draft.role} row cannot hold the accepted message {draft.inbox_id}")


def _calls_of(draft: MessageDraft) -> dict[str, ToolCall]:
    calls = {call.id: call for call in draft.tool_calls}
    if len(calls) < len(draft.tool_calls):
        raise IllegalMessage("two calls of one assistant row have the same id")
    return calls
