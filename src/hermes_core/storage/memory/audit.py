"""What tools did: a row when a call is asked for, changed when it has its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs.audit import BROKEN_OFF, MOST_ARGUMENTS, MOST_RESULT, RUNNING, AuditEntry, AuditRow
from hermes_hookspecs.turns import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.audit import AuditFilter
    from hermes_hookspecs.ids import TurnId
    from hermes_hookspecs.operations import RecordAudit

__all__ = ["is_wanted", "note_calls", "record_audit", "row_as_it_stands"]


def record_audit(tables: Tables, operation: RecordAudit) -> None:
    """Run :class:`~hermes_hookspecs.operations.RecordAudit`."""
    note_calls(tables, operation.turn_id, operation.entries)


def note_calls(tables: Tables, turn_id: TurnId, entries: Iterable[AuditEntry]) -> None:
    """Store what a turn says of its calls; a turn that is gone adds nothing."""
    turn = tables.turns.get(turn_id)
    if turn is None:
        return
    for entry in entries:
        arguments, result = entry.arguments[:MOST_ARGUMENTS], entry.result[:MOST_RESULT]
        place = (turn_id, entry.call_id)
        known, late = tables.audit.get(place), turn.outcome != ACTIVE
        if known is not None:
            changed = attrs.evolve(
                known.entry,
                outcome=entry.outcome,
                duration_ms=entry.duration_ms,
                result=result,
                approval_id=entry.approval_id or known.entry.approval_id,
            )
            tables.audit[place] = attrs.evolve(known, entry=changed, late=late)
            continue
        tables.last_audit += 1
        tables.audit[place] = AuditRow(
            id=tables.last_audit,
            lineage_id=turn.lineage_id,
            session_id=turn.session_id,
            turn_id=turn_id,
            entry=attrs.evolve(entry, arguments=arguments, result=result),
            late=late,
            entrance=turn.entrance,
            session_key=turn.session_key,
            user_id=turn.user_id,
            user_name=turn.user_name,
        )


def row_as_it_stands(tables: Tables, row: AuditRow) -> AuditRow:
    """Return a row; a call without a result is broken off once its turn has ended."""
    turn = tables.turns.get(row.turn_id)
    if row.entry.outcome != RUNNING or (turn is not None and turn.outcome == ACTIVE):
        return row
    return attrs.evolve(row, entry=attrs.evolve(row.entry, outcome=BROKEN_OFF))


def is_wanted(row: AuditRow, where: AuditFilter) -> bool:
    """Return whether a row meets every condition."""
    return (
        where.lineage_id in {None, row.lineage_id}
        and where.session_id in {None, row.session_id}
        and where.tool_name in {None, row.entry.tool_name}
        and (where.person is None or where.person in {row.user_id, row.user_name})
        and where.outcome in {None, row.entry.outcome}
        and (where.since is None or row.entry.started_at >= where.since)
        and (where.until is None or row.entry.started_at < where.until)
    )
