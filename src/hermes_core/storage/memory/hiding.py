"""Rows are taken back or brought back, with the counters that do not count hidden ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.legality import open_calls
from hermes_core.storage.memory.plugin_state import write_state
from hermes_core.storage.memory.turns import check_fence, finish
from hermes_hookspecs.errors import IllegalMessage
from hermes_hookspecs.messages import KIND_SUMMARY
from hermes_hookspecs.operations import Finish, Hid
from hermes_hookspecs.state import Change
from hermes_hookspecs.turns import DONE

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Hide

__all__ = ["hide"]


def hide(tables: Tables, operation: Hide) -> Hid:
    """Run :class:`~hermes_hookspecs.operations.Hide`."""
    turn = check_fence(tables, operation.fence)
    lineage_id = turn.lineage_id
    rows = tables.transcripts[lineage_id]
    waiting = open_calls(rows, turn.id)
    if waiting:
        raise IllegalMessage(f"nothing is taken back before the results of {', '.join(waiting)}")
    changed = _change(tables, operation, [row for row in rows if _is_meant(row, operation)], show=operation.show)
    for first, last in operation.swap:
        swapped = [row for row in tables.transcripts[lineage_id] if first <= row.id <= last]
        changed += _change(tables, operation, swapped, show=not operation.show)
    for update in operation.state:
        write_state(tables, update, operation.now)
    lease = tables.leases[lineage_id]
    tables.leases[lineage_id] = attrs.evolve(lease, renewals=lease.renewals + 1)
    version = tables.bump(lineage_id)
    if operation.finish:
        end = Finish(fence=operation.fence, outcome=DONE, now=operation.now, touch=False)
        version = finish(tables, end).version
    tip = tables.lineages[lineage_id].tip
    return Hid(lineage_id=lineage_id, session_id=tip, rows=changed, version=version)


def _is_meant(row: Message, operation: Hide) -> bool:
    inside = row.id >= operation.first and (operation.last is None or row.id <= operation.last)
    return inside and not any(first <= row.id <= last for first, last in operation.swap)


def _change(tables: Tables, operation: Hide, rows: list[Message], *, show: bool) -> int:
    """Change those of some rows that are not as wanted, with what counts them; return how many that were."""
    changed = [row for row in rows if row.hidden == show and row.kind != KIND_SUMMARY]
    if not changed:
        return 0
    lineage_id = operation.fence.lineage_id
    ids = {row.id for row in changed}
    tables.transcripts[lineage_id] = tuple(
        attrs.evolve(row, hidden=not show) if row.id in ids else row for row in tables.transcripts[lineage_id]
    )
    kind, sign = ("show", 1) if show else ("hide", -1)
    lineage = tables.lineages[lineage_id]
    tables.lineages[lineage_id] = attrs.evolve(lineage, message_count=lineage.message_count + sign * len(changed))
    for row in changed:
        session = tables.sessions[row.session_id]
        tables.sessions[row.session_id] = attrs.evolve(
            session,
            message_count=(session.message_count or 0) + sign,
            tool_call_count=(session.tool_call_count or 0) + sign * len(row.tool_calls),
        )
        tables.feed.append(
            Change(kind=kind, lineage_id=lineage_id, session_id=row.session_id, message_id=row.id, at=operation.now)
        )
    tables.note_lineage(lineage_id, operation.now)
    return len(changed)
