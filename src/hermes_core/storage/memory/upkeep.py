"""Who serves which entrance, and what is old enough to go."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.outbox import forget_deliveries
from hermes_hookspecs.inbox import EntranceServer
from hermes_hookspecs.operations import Swept
from hermes_hookspecs.turns import ACTIVE

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import ServerKey, Tables
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.operations import LeaveEntrances, ServeEntrances, Sweep
    from hermes_hookspecs.source import Entrance
    from hermes_hookspecs.turns import LeaseHolder

__all__ = ["leave_entrances", "serve_entrances", "sweep"]


def serve_entrances(tables: Tables, operation: ServeEntrances) -> None:
    """Run :class:`~hermes_hookspecs.operations.ServeEntrances`."""
    for entrance in operation.entrances:
        key = _key_of(entrance, operation.holder)
        known = tables.servers.get(key)
        if known is None:
            known = EntranceServer(entrance=entrance, holder=operation.holder, beats=0, since=operation.now)
        tables.servers[key] = attrs.evolve(known, holder=operation.holder, beats=known.beats + 1)


def leave_entrances(tables: Tables, operation: LeaveEntrances) -> None:
    """Run :class:`~hermes_hookspecs.operations.LeaveEntrances`."""
    gone = {_identity(holder) for holder in operation.holders}
    tables.servers = {key: server for key, server in tables.servers.items() if key[1] not in gone}


def _key_of(entrance: Entrance, holder: LeaseHolder) -> ServerKey:
    return entrance, _identity(holder)


def _identity(holder: LeaseHolder) -> tuple[str, str, str, int, str]:
    """Return what tells a process from every other one, whatever it does at the moment."""
    return holder.host, holder.boot_id, holder.pid_namespace, holder.pid, holder.started


def sweep(tables: Tables, operation: Sweep) -> Swept:
    """Run :class:`~hermes_hookspecs.operations.Sweep`."""
    inbox = _sweep_inbox(tables, operation)
    outbox = _sweep_outbox(tables, operation)
    state = _sweep_state(tables, operation)
    records = _sweep_records(tables, operation)
    changes = _sweep_changes(tables, operation)
    moves = _sweep_moves(tables, operation)
    return Swept(
        inbox=inbox,
        outbox=outbox,
        state=state,
        records=sum(records),
        changes=changes,
        moves=moves,
        more=operation.limit in {inbox, outbox, state, changes, moves, *records},
    )


def _sweep_inbox(tables: Tables, operation: Sweep) -> int:
    old = [
        (at, inbox_id)
        for inbox_id, at in tables.settled.items()
        if at < operation.inbox_before and not _is_owed(tables, tables.inbox[inbox_id])
    ]
    gone = {inbox_id for _, inbox_id in sorted(old)[: operation.limit]}
    for inbox_id in gone:
        del tables.inbox[inbox_id], tables.settled[inbox_id]
    tables.identities = {known: row for known, row in tables.identities.items() if row not in gone}
    return len(gone)


def _is_owed(tables: Tables, item: InboxItem) -> bool:
    """Return whether an answer of its key is on its way that may be the one to this row."""
    return any(
        row.settled_at is None
        and row.session_key == item.session_key
        and row.inbox_id is not None
        and row.inbox_id <= item.id
        for row in tables.deliveries.values()
    )


def _sweep_outbox(tables: Tables, operation: Sweep) -> int:
    settled = [(row.settled_at, row.id) for row in tables.deliveries.values() if row.settled_at is not None]
    old = sorted(each for each in settled if each[0] < operation.outbox_before)[: operation.limit]
    forget_deliveries(tables, [delivery_id for _, delivery_id in old])
    return len(old)


def _sweep_records(tables: Tables, operation: Sweep) -> tuple[int, int, int]:
    """Remove calls, requests and jobs that are old; what belongs to a turn that runs stays."""
    before, running = operation.records_before, {one.id for one in tables.turns.values() if one.outcome == ACTIVE}
    calls = sorted(
        (row.entry.started_at, row.id, place)
        for place, row in tables.audit.items()
        if row.entry.started_at < before and row.turn_id not in running
    )[: operation.limit]
    asked = [one for one in tables.approvals.values() if one.asked_at < before and one.turn_id not in running]
    ended = [one for one in tables.jobs.values() if one.settled_at is not None and one.settled_at < before]
    for _, _, place in calls:
        del tables.audit[place]
    requests = sorted(asked, key=lambda one: one.asked_at)[: operation.limit]
    for request in requests:
        del tables.approvals[request.id]
    jobs = sorted(ended, key=lambda one: one.settled_at or 0)[: operation.limit]
    for job in jobs:
        del tables.jobs[job.id]
    return len(calls), len(requests), len(jobs)


def _sweep_changes(tables: Tables, operation: Sweep) -> int:
    old = list(takewhile(lambda change: change.at < operation.changes_before, tables.feed[: operation.limit]))
    tables.feed = tables.feed[len(old) :]
    tables.feed_begin += len(old)
    return len(old)


def _sweep_moves(tables: Tables, operation: Sweep) -> int:
    old = list(takewhile(lambda move: move.at < operation.moves_before, tables.moves[: operation.limit]))
    tables.moves = tables.moves[len(old) :]
    return len(old)


def _sweep_state(tables: Tables, operation: Sweep) -> int:
    mortal = ((entry.expires_at, place) for place, entry in tables.state.items() if entry.expires_at is not None)
    expired = sorted(each for each in mortal if each[0] <= operation.now)
    gone = [place for _, place in islice(expired, operation.limit)]
    for place in gone:
        del tables.state[place]
    return len(gone)
