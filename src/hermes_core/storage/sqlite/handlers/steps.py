"""Writes of a running turn: its steps and its end, each refused when the lease is gone.

The fence is part of the statement that counts the rows, so an ordinary step is two statements. Which calls are open
stands in the lineage's row; nothing has to be looked up in the transcript.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.handlers.legality import calls_left_open
from hermes_core.storage.sqlite.handlers.transcript import ReadyRows, store_rows, synthetic_results
from hermes_core.storage.sqlite.handlers.turn_ends import settle_turn
from hermes_core.storage.sqlite.handlers.usage import add_usage
from hermes_core.storage.sqlite.rows import open_calls_text, read_open_calls
from hermes_hookspecs.errors import LeaseLost
from hermes_hookspecs.messages import TOOL
from hermes_hookspecs.operations import Finished

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import MessageId
    from hermes_hookspecs.operations import Append, Finish

    FencedRow = tuple[int, str, int, str | None]

__all__ = ["append", "finish"]

# With a holder there is an active turn, and turn_id names it.
APPEND = """
    UPDATE lineages SET version = version + 1, written_at = ?, message_count = message_count + ?,
        tool_call_count = tool_call_count + ?
    WHERE id = ? AND lease_token = ? AND turn_id = ?
    RETURNING no, tip, turn_no, open_calls
"""
SET_OPEN_CALLS = "UPDATE lineages SET open_calls = ? WHERE no = ?"
FENCED = "SELECT no, tip, turn_no, open_calls FROM lineages WHERE id = ? AND lease_token = ? AND turn_id = ?"
FINISH = """
    UPDATE lineages SET version = version + 1, written_at = :now, message_count = message_count + :messages,
        tool_call_count = tool_call_count + :calls, lease_holder = NULL, lease_label = NULL, lease_acquired_at = NULL,
        lease_expires_at = NULL, turn_no = NULL, turn_id = NULL, open_calls = NULL,
        last_activity = iif(:touch, max(last_activity, :now), last_activity)
    WHERE no = :no RETURNING version
"""


def append(operation: Append) -> Callable[[Transaction], tuple[MessageId, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.Append`."""
    fence, drafts = operation.fence, operation.drafts
    rows = ReadyRows(drafts)
    values = (operation.now, len(rows), rows.calls, fence.lineage_id, fence.token, fence.turn_id)

    def work(tx: Transaction) -> tuple[MessageId, ...]:
        found = tx.one(APPEND, values)
        if found is None:
            raise LeaseLost(fence.lineage_id, fence.token)
        lineage_no, tip, turn_no, waiting = cast("FencedRow", found)  # what APPEND returns
        left = calls_left_open(read_open_calls(waiting), drafts)
        if waiting is not None or left:
            tx.run(SET_OPEN_CALLS, (open_calls_text(left), lineage_no))
        return store_rows(tx, rows, lineage_no=lineage_no, session_id=tip, turn_no=turn_no)

    return work


def finish(operation: Finish) -> Callable[[Transaction], Finished]:
    """Work of :class:`~hermes_hookspecs.operations.Finish`."""
    fence, now = operation.fence, operation.now
    split = next((n for n, draft in enumerate(operation.drafts) if draft.role != TOOL), len(operation.drafts))
    results, rest = operation.drafts[:split], operation.drafts[split:]
    result_rows, last_rows = ReadyRows(results), ReadyRows(rest)

    def work(tx: Transaction) -> Finished:
        found = tx.one(FENCED, (fence.lineage_id, fence.token, fence.turn_id))
        if found is None:
            raise LeaseLost(fence.lineage_id, fence.token)
        lineage_no, tip, turn_no, waiting = cast("FencedRow", found)  # columns of FENCED
        unanswered = calls_left_open(read_open_calls(waiting), results)
        calls_left_open((), rest)
        parts = (result_rows, ReadyRows(synthetic_results(unanswered, now)), last_rows)
        values = {
            "now": now,
            "messages": sum(map(len, parts)),
            "calls": last_rows.calls,
            "touch": operation.touch,
            "no": lineage_no,
        }
        (version,) = cast("tuple[int]", tx.one(FINISH, values))  # the row was there a statement ago
        stored = [store_rows(tx, part, lineage_no=lineage_no, session_id=tip, turn_no=turn_no) for part in parts]
        for usage in operation.usage:
            add_usage(tx, fence.turn_id, tip, usage, now, late=False)
        settle_turn(tx, turn_no, operation.outcome, operation.reason, now)
        return Finished(message_ids=stored[0] + stored[2], version=version)

    return work
