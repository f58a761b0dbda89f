"""What tools did: a row when a call is asked for, changed when it has its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hermes_core.storage.sqlite.rows import read_calls
from hermes_hookspecs.audit import MOST_ARGUMENTS, MOST_RESULT
from hermes_hookspecs.messages import NOT_APPROVED_RESULT, NOT_BEGUN_RESULT, may_have_begun

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from hermes_core.storage.sqlite.rows import OpenCall
    from hermes_core.storage.sqlite.transaction import SQLiteValue, Transaction
    from hermes_hookspecs.audit import AuditEntry
    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.operations import RecordAudit

__all__ = ["note_calls", "record_audit", "without_a_run"]

# Who and where is what the turn says; a turn that is gone adds nothing.
UPSERT = """
    INSERT INTO audit (lineage_id, session_id, turn_id, call_id, tool_name, effect, outcome, started_at, duration_ms,
        late, platform, account_id, terminal, session_key, user_id, user_name, approval_id, arguments, result)
    SELECT lineage_id, session_id, id, :call, :tool, :effect, :outcome, :started, :duration,
        outcome <> 'active', platform, account_id, terminal, session_key, user_id, user_name, :approval, :arguments,
        :result
    FROM turns WHERE id = :turn
    ON CONFLICT (turn_id, call_id) DO UPDATE SET outcome = excluded.outcome, duration_ms = excluded.duration_ms,
        result = excluded.result, late = excluded.late, approval_id = coalesce(excluded.approval_id, approval_id)
"""

UNAPPROVED = "SELECT call_id, id FROM approvals WHERE turn_id = ? AND status <> 'approved'"
# Calls are open only behind the newest row with calls.
NEWEST_CALLS = """
    SELECT tool_calls FROM messages WHERE lineage_no = ? AND tool_calls IS NOT NULL ORDER BY id DESC LIMIT 1
"""
REFUSE = """
    UPDATE audit SET outcome = 'refused', approval_id = coalesce(?, approval_id), result = ?
    WHERE turn_id = ? AND call_id = ? AND outcome = 'running'
"""


def without_a_run(tx: Transaction, lineage_no: int, turn_id: str, calls: Sequence[OpenCall]) -> dict[str, str]:
    """Return the results of those calls of a turn that ends which did not run; the audit notes that they did not.

    They were asked for and not approved, or still waited for the result of one before them.

    :param calls: all that have no result. :returns: by id.
    """
    if not calls:
        return {}
    asked = dict(cast("Iterable[tuple[str, str]]", tx.all(UNAPPROVED, (turn_id,))))  # columns of UNAPPROVED
    results = dict.fromkeys(_not_begun(tx, lineage_no, calls), NOT_BEGUN_RESULT)
    results |= {call_id: NOT_APPROVED_RESULT for call_id, _name in calls if call_id in asked}
    for call_id, result in results.items():
        tx.run(REFUSE, (asked.get(call_id), result, turn_id, call_id))
    return results


def _not_begun(tx: Transaction, lineage_no: int, calls: Sequence[OpenCall]) -> list[str]:
    if len(calls) == 1:
        return []
    found = tx.one(NEWEST_CALLS, (lineage_no,))
    open_ids = dict(calls)
    asked = () if found is None else read_calls(cast("tuple[str]", found)[0])  # its column
    unanswered = [call for call in asked if call.id in open_ids]
    begun = {call.id for call in may_have_begun(unanswered)}
    return [call.id for call in unanswered if call.id not in begun]


def note_calls(tx: Transaction, turn_id: TurnId, entries: Iterable[AuditEntry]) -> None:
    """Store what a turn says of its calls."""
    for entry in entries:
        values: dict[str, SQLiteValue] = {
            "turn": turn_id,
            "call": entry.call_id,
            "tool": entry.tool_name,
            "effect": entry.effect,
            "outcome": entry.outcome,
            "started": entry.started_at,
            "duration": entry.duration_ms,
            "approval": entry.approval_id,
            "arguments": entry.arguments[:MOST_ARGUMENTS],
            "result": entry.result[:MOST_RESULT],
        }
        tx.run(UPSERT, values)


def record_audit(operation: RecordAudit) -> Callable[[Transaction], None]:
    """Work of :class:`~hermes_hookspecs.operations.RecordAudit`."""
    return lambda tx: note_calls(tx, operation.turn_id, operation.entries)
