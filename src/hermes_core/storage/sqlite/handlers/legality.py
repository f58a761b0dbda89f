"""Which rows may follow which: a result answers an open call, once, and nothing comes between."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes_hookspecs.errors import IllegalMessage
from hermes_hookspecs.messages import ASSISTANT, ROLES, TOOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.storage.sqlite.rows import OpenCall
    from hermes_hookspecs.messages import MessageDraft

__all__ = ["calls_left_open"]


def calls_left_open(calls: Iterable[OpenCall], drafts: Iterable[MessageDraft]) -> tuple[OpenCall, ...]:
    """Id and tool of the calls that are open behind ``drafts``, where ``calls`` are open before them.

    :raises IllegalMessage: a row would break the transcript.
    """
    open_calls = dict(calls)
    for draft in drafts:
        if draft.role not in ROLES:
            raise IllegalMessage(f"there is no role {draft.role!r}; there are {', '.join(ROLES)}")
        if draft.tool_calls and draft.role != ASSISTANT:
            raise IllegalMessage(f"a {draft.role} row cannot ask for tools")
        if draft.role == TOOL:
            if draft.tool_call_id is None or open_calls.pop(draft.tool_call_id, None) is None:
                raise IllegalMessage(f"no open call has the id {draft.tool_call_id!r} that this result answers")
        elif open_calls:
            raise IllegalMessage(f"a {draft.role} row cannot come before the results of {', '.join(open_calls)}")
        elif draft.tool_calls:
            open_calls = {call.id: call.name for call in draft.tool_calls}
            if len(open_calls) < len(draft.tool_calls):
                raise IllegalMessage("two calls of one assistant row have the same id")
    return tuple(open_calls.items())
