"""Flags of a lineage, and its end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.closing import revoke_lease
from hermes_core.storage.memory.outbox import forget_deliveries
from hermes_hookspecs.errors import LeaseBusy
from hermes_hookspecs.inbox import APPLIED, CLAIMED, PENDING, SETTLED
from hermes_hookspecs.operations import Deleted, Revoke

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.operations import Delete, SetFlags
    from hermes_hookspecs.sessions import Lineage

__all__ = ["delete", "set_flags"]


def set_flags(tables: Tables, operation: SetFlags) -> Lineage:
    """Run :class:`~hermes_hookspecs.operations.SetFlags`."""
    lineage = tables.lineage(operation.lineage_id)
    pinned = lineage.pinned if operation.pinned is None else operation.pinned
    archived = lineage.archived if operation.archived is None else operation.archived
    if (pinned, archived) != (lineage.pinned, lineage.archived):
        tables.lineages[lineage.id] = attrs.evolve(lineage, pinned=pinned, archived=archived)
        tables.bump(lineage.id)
        tables.note_lineage(lineage.id, operation.now)
    return tables.lineages[lineage.id]


def delete(tables: Tables, operation: Delete) -> Deleted:
    """Run :class:`~hermes_hookspecs.operations.Delete`."""
    lineage = tables.lineage(operation.lineage_id)
    lineage_id, lease = lineage.id, tables.leases[lineage.id]
    if lease.holder is not None and operation.force:
        revoke_lease(tables, Revoke(lineage_id=lineage_id, now=operation.now, reason="deleted"))
    elif lease.holder is not None and lease.stamp != operation.presumed_dead:
        holder = lease.holder.describe()
        raise LeaseBusy(f"a turn of {holder} is running in {lineage_id}; wait for it, or use --force", holder=holder)
    segments = [session.id for session in tables.sessions.values() if session.lineage_id == lineage_id]
    rows = tables.transcripts.pop(lineage_id)
    for session_id in segments:
        del tables.sessions[session_id]
    del tables.lineages[lineage_id], tables.leases[lineage_id]
    _forget(tables, lineage_id, operation.now)
    tables.feed = [
        change
        if change.message_id is None or change.lineage_id != lineage_id
        else attrs.evolve(change, session_id=lineage.tip)
        for change in tables.feed
    ]
    tables.note_lineage(lineage_id, operation.now, "delete-lineage")
    return Deleted(lineage_id=lineage_id, sessions=len(segments), messages=len(rows))


def _let_go(tables: Tables, item: InboxItem, now: int) -> None:
    """Let what waits wait without a lineage; of the rest keep what tells a redelivery."""
    tables.inbox[item.id] = item = attrs.evolve(item, lineage_id=None)
    if item.status in {PENDING, APPLIED}:
        return
    tables.settled.setdefault(item.id, now)
    status = SETTLED if item.status == CLAIMED else item.status
    tables.inbox[item.id] = attrs.evolve(item, status=status, text="", attachments=(), outcome=None)


def _forget(tables: Tables, lineage_id: LineageId, now: int) -> None:
    """Remove what hangs on a lineage outside its own rows."""
    tables.turns = {key: turn for key, turn in tables.turns.items() if turn.lineage_id != lineage_id}
    tables.usage = [row for row in tables.usage if row.lineage_id != lineage_id]
    tables.state = {key: entry for key, entry in tables.state.items() if entry.lineage_id != lineage_id}
    tables.approvals = {key: one for key, one in tables.approvals.items() if one.lineage_id != lineage_id}
    tables.moves = [move for move in tables.moves if move.lineage_id != lineage_id]
    tables.jobs = {key: job for key, job in tables.jobs.items() if job.lineage_id != lineage_id}
    for place, row in tables.audit.items():
        if row.lineage_id == lineage_id:
            tables.audit[place] = attrs.evolve(row, entry=attrs.evolve(row.entry, arguments="", result=""))
    for item in [item for item in tables.inbox.values() if item.lineage_id == lineage_id]:
        _let_go(tables, item, now)
    forget_deliveries(tables, [row.id for row in tables.deliveries.values() if row.lineage_id == lineage_id])
    for key, route in tables.routes.items():
        if route.lineage_id == lineage_id:
            tables.routes[key] = attrs.evolve(route, lineage_id=None)
