"""Rows are taken back or brought back, with the counters that do not count hidden ones."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.plugin_state import put
from hermes_core.storage.sqlite.handlers.steps import finish
from hermes_core.storage.sqlite.handlers.tips import note_lineage
from hermes_core.storage.sqlite.rows import read_calls, read_open_calls
from hermes_hookspecs.errors import IllegalMessage, LeaseLost
from hermes_hookspecs.operations import Finish, Hid
from hermes_hookspecs.turns import DONE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import SessionId
    from hermes_hookspecs.operations import Hide

    MeantRow = tuple[int, str, str | None]

__all__ = ["hide"]

STAND = "SELECT no, tip, open_calls FROM lineages WHERE id = ? AND lease_token = ? AND turn_id = ?"
MEANT = """
    SELECT id, session_id, tool_calls FROM messages
    WHERE lineage_no = ? AND id >= ? AND id <= ? AND hidden = ? AND kind IS NOT 'summary' ORDER BY id
"""
SET = "UPDATE messages SET hidden = ? WHERE id = ?"
TELL = "INSERT INTO changes (kind, lineage_no, message_id, at) VALUES (?, ?, ?, ?)"
# Segments before the tip count their own rows; the tip's are what is left of the lineage's.
COUNT_SEGMENT = """
    UPDATE sessions SET message_count = message_count + ?, tool_call_count = tool_call_count + ? WHERE id = ?
"""
COUNT = """
    UPDATE lineages SET message_count = message_count + ?, tool_call_count = tool_call_count + ?,
        closed_message_count = closed_message_count + ?, closed_tool_call_count = closed_tool_call_count + ?
    WHERE no = ?
"""
RENEW = """
    UPDATE lineages SET version = version + 1, lease_renewals = lease_renewals + 1, written_at = ?
    WHERE no = ? RETURNING version
"""
_LAST = 2**62


def hide(operation: Hide) -> Callable[[Transaction], Hid]:
    """Work of :class:`~hermes_hookspecs.operations.Hide`."""
    fence, now = operation.fence, operation.now
    last = _LAST if operation.last is None else operation.last
    end = finish(Finish(fence=fence, outcome=DONE, now=now, touch=False)) if operation.finish else None

    def work(tx: Transaction) -> Hid:
        found = tx.one(STAND, (fence.lineage_id, fence.token, fence.turn_id))
        if found is None:
            raise LeaseLost(fence.lineage_id, fence.token)
        lineage_no, tip, waiting = cast("tuple[int, SessionId, str | None]", found)  # columns of STAND
        calls = [call_id for call_id, _ in read_open_calls(waiting)]
        if calls:
            raise IllegalMessage(f"nothing is taken back before the results of {', '.join(calls)}")
        between, show = (operation.first, last), operation.show
        rows = _change(tx, operation, lineage_no, tip, between, show=show, without=operation.swap)
        for swapped in operation.swap:
            rows += _change(tx, operation, lineage_no, tip, swapped, show=not show)
        (version,) = cast("tuple[int]", tx.one(RENEW, (now, lineage_no)))  # it was there
        for update in operation.state:
            put(tx, update, now)
        if end is not None:
            version = end(tx).version
        return Hid(lineage_id=fence.lineage_id, session_id=tip, rows=rows, version=version)

    return work


def _change(
    tx: Transaction,
    operation: Hide,
    lineage_no: int,
    tip: SessionId,
    between: tuple[int, int],
    *,
    show: bool,
    without: Sequence[tuple[int, int]] = (),
) -> int:
    """Change what is meant between two rows and count it; return how many rows that were."""
    meant = tx.all(MEANT, (lineage_no, *between, int(show)))
    rows = cast("Sequence[MeantRow]", meant)  # columns of MEANT
    if without:
        rows = [row for row in rows if not any(first <= row[0] <= last for first, last in without)]
    kind, sign = ("show", 1) if show else ("hide", -1)
    tx.run_many(SET, [(int(not show), row_id) for row_id, _, _ in rows])
    tx.run_many(TELL, [(kind, lineage_no, row_id, operation.now) for row_id, _, _ in rows])
    messages: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for _, session_id, cell in rows:
        messages[session_id] += sign
        calls[session_id] += 0 if cell is None else sign * len(read_calls(cell))
    closed = [session_id for session_id in messages if session_id != tip]
    tx.run_many(COUNT_SEGMENT, [(messages[one], calls[one], one) for one in closed])
    if rows:
        note_lineage(tx, lineage_no, operation.now)
        in_closed = sum(messages[one] for one in closed), sum(calls[one] for one in closed)
        tx.run(COUNT, (messages.total(), calls.total(), *in_closed, lineage_no))
    return len(rows)
