"""Writes of a running turn: its steps and its end, each refused when the lease is gone.

One look at the lineage's row checks the fence and says where the rows belong and which calls are open: nothing has to
be looked up in the transcript, and an ordinary step is three statements, each on a row found by its number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from attrs import evolve

from hermes_core.storage.sqlite.cleaning import clean, drafts_are_clean
from hermes_core.storage.sqlite.handlers.audit import note_calls, without_a_run
from hermes_core.storage.sqlite.handlers.deliveries import cells_of, store_deliveries
from hermes_core.storage.sqlite.handlers.legality import calls_left_open
from hermes_core.storage.sqlite.handlers.steering import take_steered
from hermes_core.storage.sqlite.handlers.transcript import ReadyRows, store_rows, synthetic_results
from hermes_core.storage.sqlite.handlers.turn_ends import settle_turn
from hermes_core.storage.sqlite.handlers.usage import add_usage
from hermes_core.storage.sqlite.rows import open_calls_text, read_open_calls
from hermes_hookspecs.errors import IllegalMessage, LeaseLost
from hermes_hookspecs.messages import TOOL
from hermes_hookspecs.operations import Finished

if TYPE_CHECKING:
    from collections.abc import Callable

    from hermes_core.storage.sqlite.transaction import Transaction
    from hermes_hookspecs.ids import MessageId
    from hermes_hookspecs.messages import MessageDraft
    from hermes_hookspecs.operations import Append, Finish
    from hermes_hookspecs.turns import Fence

    FencedRow = tuple[int, str, int, str | None]

__all__ = ["append", "finish"]

COUNT = """
    UPDATE lineages SET version = version + 1, lease_renewals = lease_renewals + 1, written_at = ?,
        message_count = message_count + ?, tool_call_count = tool_call_count + ?, open_calls = ?
    WHERE no = ?
"""
# With a holder there is an active turn, and turn_id names it.
FENCED = "SELECT no, tip, turn_no, open_calls FROM lineages WHERE id = ? AND lease_token = ? AND turn_id = ?"
TIP = "SELECT tip FROM lineages WHERE id = ?"
# What COUNT and FENCED do, in one statement, for rows that no call waits for.
COUNT_FENCED = """
    UPDATE lineages SET version = version + 1, lease_renewals = lease_renewals + 1, written_at = ?,
        message_count = message_count + ?, tool_call_count = tool_call_count + ?, open_calls = ?
    WHERE id = ? AND lease_token = ? AND turn_id = ? AND open_calls IS NULL
    RETURNING no, tip, turn_no
"""
FINISH = """
    UPDATE lineages SET version = version + 1, written_at = :now, message_count = message_count + :messages,
        tool_call_count = tool_call_count + :calls, lease_holder = NULL, lease_label = NULL, lease_acquired_at = NULL,
        lease_expires_at = NULL, turn_no = NULL, turn_id = NULL, open_calls = NULL,
        last_activity = iif(:touch, max(last_activity, :now), last_activity)
    WHERE no = :no RETURNING version
"""


def _fenced(tx: Transaction, fence: Fence) -> FencedRow:
    """Where rows of the turn go: lineage number, session, turn number, open calls.

    :raises LeaseLost: the lease or the turn is not what the fence says.
    """
    found = tx.one(FENCED, (fence.lineage_id, fence.token, fence.turn_id))
    if found is None:
        raise LeaseLost(fence.lineage_id, fence.token)
    return cast("FencedRow", found)  # columns of FENCED


def _is_clean(operation: Append | Finish) -> bool:
    fence = operation.fence
    return fence.lineage_id.isascii() and fence.turn_id.isascii() and drafts_are_clean(operation.drafts)


def _add_usages(tx: Transaction, operation: Append | Finish, session_id: str) -> None:
    for usage in operation.usage:
        add_usage(tx, operation.fence.turn_id, session_id, usage, operation.now, late=False)
    for usage in operation.side_usage:
        add_usage(tx, operation.fence.turn_id, session_id, usage, operation.now, late=True)


def _has_more(operation: Finish) -> bool:
    return bool(operation.usage or operation.side_usage or operation.deliveries)


def append(operation: Append) -> Callable[[Transaction], tuple[MessageId, ...]]:
    """Work of :class:`~hermes_hookspecs.operations.Append`."""
    has_notes = bool(operation.audit or operation.usage or operation.side_usage)
    if has_notes or not _is_clean(operation):
        operation = clean(operation)
    if has_notes:
        return _noting(operation)
    fence, drafts, now = operation.fence, operation.drafts, operation.now
    rows = ReadyRows(drafts)
    if any(draft.inbox_id is not None for draft in drafts):
        return lambda tx: _append_looking(tx, fence, drafts, rows, now)
    try:
        open_behind = open_calls_text(calls_left_open((), drafts))
    except IllegalMessage:
        # Perhaps legal behind calls that are open; the row of the lineage tells.
        return lambda tx: _append_looking(tx, fence, drafts, rows, now)
    bindings = (now, len(rows), rows.calls, open_behind, fence.lineage_id, fence.token, fence.turn_id)

    def work(tx: Transaction) -> tuple[MessageId, ...]:
        found = tx.one(COUNT_FENCED, bindings)
        if found is None:
            return _append_looking(tx, fence, drafts, rows, now)
        lineage_no, tip, turn_no = cast("tuple[int, str, int]", found)  # what COUNT_FENCED returns
        return store_rows(tx, rows, lineage_no=lineage_no, session_id=tip, turn_no=turn_no)

    return work


def _noting(operation: Append) -> Callable[[Transaction], tuple[MessageId, ...]]:
    """Append, and write down what is known of the calls and what models used."""
    store = append(evolve(operation, audit=(), usage=(), side_usage=()))

    def work(tx: Transaction) -> tuple[MessageId, ...]:
        ids = store(tx)
        note_calls(tx, operation.fence.turn_id, operation.audit)
        if operation.usage or operation.side_usage:
            (tip,) = cast("tuple[str]", tx.one(TIP, (operation.fence.lineage_id,)))  # the fence has found it
            _add_usages(tx, operation, tip)
        return ids

    return work


def _append_looking(
    tx: Transaction, fence: Fence, drafts: tuple[MessageDraft, ...], rows: ReadyRows, now: int
) -> tuple[MessageId, ...]:
    """Append where calls may be open, accepted messages come in, or the lease is gone."""
    lineage_no, tip, turn_no, waiting = _fenced(tx, fence)
    left = calls_left_open(read_open_calls(waiting), drafts)
    steered = [draft for draft in drafts if draft.inbox_id is not None]
    if steered:
        take_steered(tx, fence, steered, now)
    tx.run(COUNT, (now, len(rows), rows.calls, open_calls_text(left), lineage_no))
    return store_rows(tx, rows, lineage_no=lineage_no, session_id=tip, turn_no=turn_no)


def finish(operation: Finish) -> Callable[[Transaction], Finished]:
    """Work of :class:`~hermes_hookspecs.operations.Finish`."""
    if not (_is_clean(operation) and operation.reason.isascii() and not _has_more(operation)):
        operation = clean(operation)
    fence, now = operation.fence, operation.now
    split = next((n for n, draft in enumerate(operation.drafts) if draft.role != TOOL), len(operation.drafts))
    results, rest = operation.drafts[:split], operation.drafts[split:]
    result_rows, last_rows = ReadyRows(results), ReadyRows(rest)
    deliveries = cells_of(operation.deliveries)

    def work(tx: Transaction) -> Finished:
        lineage_no, tip, turn_no, waiting = _fenced(tx, fence)
        unanswered = calls_left_open(read_open_calls(waiting), results)
        calls_left_open((), rest)
        not_run = without_a_run(tx, lineage_no, fence.turn_id, unanswered)
        parts = (result_rows, ReadyRows(synthetic_results(unanswered, not_run, now)), last_rows)
        values = {
            "now": now,
            "messages": sum(map(len, parts)),
            "calls": last_rows.calls,
            "touch": operation.touch,
            "no": lineage_no,
        }
        (version,) = cast("tuple[int]", tx.one(FINISH, values))  # the row was there a statement ago
        stored = [store_rows(tx, part, lineage_no=lineage_no, session_id=tip, turn_no=turn_no) for part in parts]
        _add_usages(tx, operation, tip)
        settle_turn(tx, turn_no, operation.outcome, operation.reason, now, again=operation.again)
        store_deliveries(tx, deliveries, now)
        return Finished(message_ids=stored[0] + stored[2], version=version)

    return work
