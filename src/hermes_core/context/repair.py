"""The outgoing copy of a transcript, made legal for any model.

Works on what is sent and never on rows. Idempotent, and monotone: for any turn boundary *n*, the repair of the first
*n* rows is a prefix of the repair of more of them, so the prompt's prefix never changes. That is why user rows merge
only inside one turn, why assistant rows never merge, and why a call is answered right behind its row or not at all.

One walk from front to back; each row is decided by what stands before it in the copy, so there are no passes whose
order could matter. What it does, and why, is in :data:`~hermes_hookspecs.context.REPAIR_REASONS`. Rows that are for
people only, and rows taken back by undo, are left out and are no repair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.context import (
    DOUBLED_CALL,
    DOUBLED_RESULT,
    EMPTY_ANSWER,
    JOINED,
    ORPHANED_RESULT,
    UNANSWERED_CALL,
    UNKNOWN_ROLE,
    UNNAMED_CALL,
    Repair,
)
from hermes_hookspecs.messages import (
    ASSISTANT,
    INTERRUPTED_RESULT,
    KIND_INTERRUPTED,
    KIND_NOTE,
    KIND_SUMMARY,
    ROLES,
    TOOL,
    USER,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hermes_hookspecs.ids import MessageId
    from hermes_hookspecs.messages import Message, ToolCall

__all__ = ["UNNAMED_TOOL", "new_repairs", "repair_message_sequence", "repaired"]

UNNAMED_TOOL = "invalid_tool_call"
"""The name under which a call of no tool is sent."""


def repair_message_sequence(messages: Iterable[Message]) -> list[Message]:
    """Return a legal copy of ``messages``, oldest first; the rows given are not touched.

    The last row's open calls stay open when nothing follows: their turn may still be running.
    """
    return repaired(messages)[0]


def repaired(messages: Iterable[Message]) -> tuple[list[Message], tuple[Repair, ...]]:
    """Return a legal copy of ``messages``, oldest first, and what it has otherwise than they have, in their order."""
    walk = _Walk()
    for row in messages:
        if row.kind != KIND_NOTE and not row.hidden:
            walk.take(row)
    return walk.sent, tuple(sorted(walk.repairs, key=lambda one: one.message_ids[0]))


def new_repairs(rows: Sequence[Message], repairs: Sequence[Repair]) -> tuple[Repair, ...]:
    """Return those repairs that the turn before did not make: each is told once, however many turns repeat it.

    :param rows: of the window, the user rows of the turn that begins last. repairs: of all of them.
    """
    if not repairs:
        return ()
    seen = set(repaired(rows[: _end_of_last_prompt(rows)])[1])
    return tuple(one for one in repairs if one not in seen)


def _end_of_last_prompt(rows: Sequence[Message]) -> int:
    """Return how many of the rows the turn before the last one began with."""
    end = len(rows)
    while end and rows[end - 1].turn_id == rows[-1].turn_id:
        end -= 1
    if not end:
        return 0
    start, turn = end, rows[end - 1].turn_id
    while start and rows[start - 1].turn_id == turn:
        start -= 1
    while start < end and rows[start].role == USER:
        start += 1
    return start


class _Walk:
    """The copy as far as it is made, with the calls that its last assistant row still has open.

    :ivar sent: the copy. repairs: what differs. open_calls: by id, in order, without a result so far.
    """

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.repairs: list[Repair] = []
        self.open_calls: dict[str, ToolCall] = {}
        self._answered: set[str] = set()
        self._asking: tuple[MessageId, ...] = ()
        self._joined: list[MessageId] = []
        self._join_at = 0

    def take(self, row: Message) -> None:
        """Decide about the next row."""
        if row.role not in ROLES:
            self._note(UNKNOWN_ROLE, row.id)
        elif row.role == TOOL:
            self._result(row)
        elif row.role == ASSISTANT and not row.content and not row.sent and not row.tool_calls:
            self._note(EMPTY_ANSWER, row.id)
        else:
            self._speech(row)

    def _result(self, row: Message) -> None:
        call_id = row.tool_call_id
        if call_id is not None and self.open_calls.pop(call_id, None) is not None:
            self._answered.add(call_id)
            self.sent.append(row)
        else:
            self._note(DOUBLED_RESULT if call_id in self._answered else ORPHANED_RESULT, row.id)

    def _speech(self, row: Message) -> None:
        if self.open_calls:
            self._note(UNANSWERED_CALL, *self._asking)
            self.sent.extend(_unanswered(self.sent[-1], self.open_calls.values()))
            self.open_calls = {}
        self._answered = set()
        if row.role == USER and self.sent and _may_join(self.sent[-1], row):
            self._join(row)
            return
        self._joined = [row.id]
        self.sent.append(self._callable(row) if row.role == ASSISTANT and row.tool_calls else row)

    def _join(self, row: Message) -> None:
        """Put a user row behind the one before it; one repair names all rows of one message."""
        if len(self._joined) == 1:
            self._join_at = len(self.repairs)
            self._note(JOINED, *self._joined)
        self._joined.append(row.id)
        self.repairs[self._join_at] = Repair(kind=JOINED, message_ids=tuple(self._joined))
        self.sent[-1] = _joined(self.sent[-1], row)

    def _callable(self, row: Message) -> Message:
        """Return an assistant row whose calls can be told apart and name a tool."""
        self._asking = (row.id,)
        first: dict[str, ToolCall] = {}
        for call in row.tool_calls:
            first.setdefault(call.id, call)
        kept = tuple(first.values())
        if len(kept) != len(row.tool_calls):
            self._note(DOUBLED_CALL, row.id)
        named = tuple(call if call.name.strip() else attrs.evolve(call, name=UNNAMED_TOOL) for call in kept)
        if named != kept:
            self._note(UNNAMED_CALL, row.id)
        self.open_calls = {call.id: call for call in named}
        return row if named == row.tool_calls else attrs.evolve(row, tool_calls=named)

    def _note(self, kind: str, *ids: MessageId) -> None:
        self.repairs.append(Repair(kind=kind, message_ids=ids))


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


def _may_join(earlier: Message, later: Message) -> bool:
    return (
        earlier.role == USER
        and later.turn_id is not None
        and earlier.turn_id == later.turn_id
        and KIND_SUMMARY not in (earlier.kind, later.kind)
    )


def _joined(earlier: Message, later: Message) -> Message:
    return attrs.evolve(
        earlier,
        content=f"{earlier.content}\n\n{later.content}",
        sent=f"{_as_sent(earlier)}\n\n{_as_sent(later)}",
        attachments=earlier.attachments + later.attachments,
    )


def _as_sent(row: Message) -> str:
    return row.content if row.sent is None else row.sent
