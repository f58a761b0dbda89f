"""Rows on their way into ``messages``: made ready outside the transaction, stored with few statements inside."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import apsw

from hermes_core.storage.sqlite.rows import attachments_text, calls_text
from hermes_hookspecs.errors import IllegalMessage
from hermes_hookspecs.messages import (
    ASSISTANT,
    INTERRUPTED_RESULT,
    KIND_CLOSING,
    KIND_INTERRUPTED,
    TOOL,
    USER,
    Message,
    MessageDraft,
    closing_text,
    preview_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from hermes_core.storage.sqlite.rows import OpenCall
    from hermes_core.storage.sqlite.transaction import SQLiteValue, Transaction
    from hermes_hookspecs.ids import MessageId
    from hermes_hookspecs.turns import Turn

    Row = tuple[SQLiteValue, ...]

__all__ = ["ReadyRows", "closing_rows", "message_of", "store_rows", "synthetic_results"]

INSERT = """
    INSERT INTO messages (lineage_no, session_id, turn_no, role, content, timestamp, sent, tool_calls, tool_call_id,
        tool_name, token_count, finish_reason, reasoning, kind, inbox_id, attachments)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
PREVIEW = "UPDATE lineages SET preview = ? WHERE no = ? AND preview IS NULL"


class ReadyRows:
    """Rows ready to be stored, with what the lineage counts of them.

    :ivar cells: the columns of each row from ``role`` on.
    :ivar calls: how many tools the rows ask for.
    :ivar preview: beginning of the first user row, ``None`` when there is no user row.
    """

    __slots__ = ("calls", "cells", "preview")

    def __init__(self, drafts: Iterable[MessageDraft]) -> None:
        self.cells: list[Row] = []
        self.calls = 0
        self.preview: str | None = None
        for draft in drafts:
            self.cells.append(_cells(draft))
            self.calls += len(draft.tool_calls)
            if self.preview is None and draft.role == USER:
                self.preview = preview_of(draft.content)

    def __len__(self) -> int:
        return len(self.cells)


def _cells(draft: MessageDraft) -> Row:
    return (
        draft.role,
        draft.content,
        draft.timestamp,
        draft.sent,
        calls_text(draft.tool_calls) if draft.tool_calls else None,
        draft.tool_call_id,
        draft.tool_name,
        draft.token_count,
        draft.finish_reason,
        draft.reasoning,
        draft.kind or None,
        draft.inbox_id,
        attachments_text(draft.attachments) if draft.attachments else None,
    )


def store_rows(
    tx: Transaction, rows: ReadyRows, *, lineage_no: int, session_id: str, turn_no: int | None
) -> tuple[MessageId, ...]:
    """Store rows and return their ids in order; the caller has counted them in the lineage in this transaction.

    :raises IllegalMessage: a row holds an accepted message that the lineage has already.
    """
    place = (lineage_no, session_id, turn_no)
    cells = rows.cells
    if rows.preview is not None:
        tx.run(PREVIEW, (rows.preview, lineage_no))
    try:
        if len(cells) == 1:
            return (cast("MessageId", tx.insert(INSERT, place + cells[0])),)  # the rowid is the message id
        if not cells:
            return ()
        tx.run_many(INSERT, [place + each for each in cells])
    except apsw.ConstraintError as error:
        raise IllegalMessage("an accepted message is stored once, and the lineage has this one already") from error
    # Ids only grow and nobody else writes meanwhile, so those of one call stand side by side.
    (last,) = cast("tuple[int]", tx.one("SELECT last_insert_rowid()"))  # an integer, always
    return tuple(cast("Sequence[MessageId]", range(last - len(cells) + 1, last + 1)))  # they are message ids


def message_of(draft: MessageDraft, message_id: MessageId, turn: Turn) -> Message:
    """The row that a draft has become in a turn."""
    return Message(
        id=message_id,
        lineage_id=turn.lineage_id,
        session_id=turn.session_id,
        turn_id=turn.id,
        role=draft.role,
        content=draft.content,
        timestamp=draft.timestamp,
        sent=draft.sent,
        tool_calls=draft.tool_calls,
        tool_call_id=draft.tool_call_id,
        tool_name=draft.tool_name,
        token_count=draft.token_count,
        finish_reason=draft.finish_reason,
        reasoning=draft.reasoning,
        kind=draft.kind,
        inbox_id=draft.inbox_id,
        attachments=draft.attachments,
    )


def synthetic_results(calls: Iterable[OpenCall], not_run: Mapping[str, str], now: int) -> list[MessageDraft]:
    """Results for calls that were never answered, in order of the calls.

    :param not_run: results of those that did not run, by id; what came of the others is unknown.
    """
    return [
        MessageDraft(
            role=TOOL,
            content=not_run.get(call_id, INTERRUPTED_RESULT),
            kind=KIND_INTERRUPTED,
            tool_call_id=call_id,
            tool_name=name,
            timestamp=now,
        )
        for call_id, name in calls
    ]


def closing_rows(
    calls: Iterable[OpenCall], not_run: Mapping[str, str], outcome: str, reason: str, now: int
) -> ReadyRows:
    """What a turn gets that did not end by itself: results for its open calls and one closing row."""
    closing = MessageDraft(role=ASSISTANT, content=closing_text(outcome, reason), kind=KIND_CLOSING, timestamp=now)
    return ReadyRows([*synthetic_results(calls, not_run, now), closing])
