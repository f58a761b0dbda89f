"""Turns: begin, renew, append, finish, revoke, usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import attrs

from hermes_core.storage.memory.audit import note_calls
from hermes_core.storage.memory.closing import (
    active_turn,
    break_off,
    claimed_again,
    end_turn,
    revoke_lease,
    synthetic_results,
)
from hermes_core.storage.memory.legality import check_rows, check_steered, check_stored_once, open_calls
from hermes_core.storage.memory.tables import UsageRow
from hermes_hookspecs.errors import Conflict, LeaseLost
from hermes_hookspecs.inbox import CLAIMED, CONTROL, PENDING, SETTLED
from hermes_hookspecs.messages import KIND_RECOVERY, TOOL
from hermes_hookspecs.operations import Begun, Busy, Changed, Finished, NothingWaiting, NotYourTurn
from hermes_hookspecs.outbox import address_of
from hermes_hookspecs.turns import ACTIVE, DEAD, INTERRUPTED, Lease, RecordedUsage, Turn

if TYPE_CHECKING:
    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import MessageId, SessionId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import Message
    from hermes_hookspecs.operations import Append, Begin, BeginResult, Finish, RecordUsage, Renew, Revoke
    from hermes_hookspecs.sessions import Session
    from hermes_hookspecs.turns import Fence, Usage

__all__ = ["append", "begin", "check_fence", "finish", "record_usage", "renew", "revoke"]

Number = TypeVar("Number", int, float)


def begin(tables: Tables, operation: Begin) -> BeginResult:
    """Run :class:`~hermes_hookspecs.operations.Begin`."""
    lineage_id = tables.lineage(operation.lineage_id).id
    lease = tables.leases[lineage_id]
    known = tables.turns.get(operation.turn_id)
    if known is not None and known.outcome == ACTIVE and lease.holder == operation.holder:
        return _begun(tables, known, interrupted=None)
    if lease.holder is not None and lease.stamp != operation.presumed_dead:
        return Busy(lease=lease)
    dead = active_turn(tables, lineage_id)
    items = [] if operation.maintenance else _choose(tables, operation, dead)
    if not isinstance(items, list):
        return items
    interrupted = None if dead is None else break_off(tables, dead, INTERRUPTED, DEAD, operation)
    if not operation.maintenance:
        tables.reopen_tip(lineage_id)
    for item in items:
        tables.said_at(lineage_id, item.source, operation.now)
    turn = _start(tables, operation, items)
    _store_user_rows(tables, operation, turn)
    _freeze(tables, operation, turn.session_id)
    if operation.touch:
        tables.touch(lineage_id, operation.now)
    tables.bump(lineage_id)
    return _begun(tables, turn, interrupted=interrupted)


def _choose(
    tables: Tables, operation: Begin, dead: Turn | None
) -> list[InboxItem] | NotYourTurn | Changed | NothingWaiting:
    """Return the rows that the drafts name, when they are the oldest and belong together; nothing is written yet."""
    again = [] if dead is None else claimed_again(tables, dead, operation.again)
    queue = sorted(tables.pending(lineage_id=operation.lineage_id) + again, key=lambda item: item.id)
    waiting = [item for item in queue if item.id not in operation.passed_over]
    if not waiting or not operation.drafts:
        return NothingWaiting()
    wanted = [draft.inbox_id for draft in operation.drafts]
    if wanted[0] not in {item.id for item in waiting}:
        return Changed()
    oldest = waiting[0]
    if oldest.id != wanted[0]:
        return NotYourTurn(item=oldest)
    chosen = waiting[: len(wanted)]
    if [item.id for item in chosen] != wanted or any(_address(item) != _address(oldest) for item in chosen[1:]):
        return Changed()
    return chosen


def _address(item: InboxItem) -> tuple[str, str | None, str]:
    """Return what rows of one turn have in common: one principal, one place to answer."""
    return item.session_key, item.source.participant, address_of(item.source)


def _start(tables: Tables, operation: Begin, items: list[InboxItem]) -> Turn:
    lineage, lease = tables.lineages[operation.lineage_id], tables.leases[operation.lineage_id]
    first = items[0] if items else None
    tables.leases[lineage.id] = Lease(
        lineage_id=lineage.id,
        token=lease.token + 1,
        renewals=0,
        holder=operation.holder,
        acquired_at=operation.now,
        expires_at=operation.now + operation.ttl_ms,
        ttl_ms=operation.ttl_ms,
    )
    turn = Turn(
        id=operation.turn_id,
        lineage_id=lineage.id,
        session_id=lineage.tip,
        token=lease.token + 1,
        entrance=operation.holder.entrance,
        session_key=operation.holder.session_key,
        user_id=None if first is None else first.source.participant,
        user_name=None if first is None else first.source.user_name,
        inbox_ids=tuple(item.id for item in items),
        started_at=operation.now,
        ended_at=None,
        outcome=ACTIVE,
        reason="",
        attempt=1 if first is None else first.attempts + 1,
    )
    tables.turns[turn.id] = turn
    tables.lineages[lineage.id] = attrs.evolve(lineage, turn_count=lineage.turn_count + 1)
    for item in items:
        tables.set_item(item, status=CLAIMED, attempts=item.attempts + 1)
    return turn


def _store_user_rows(tables: Tables, operation: Begin, turn: Turn) -> None:
    """Store what is not stored yet; where something was, the note that marks a retry follows."""
    if operation.maintenance:
        return
    stored = {row.inbox_id for row in tables.transcripts[turn.lineage_id]}
    drafts = [draft for draft in operation.drafts if draft.inbox_id not in stored]
    if operation.note is not None and len(drafts) < len(operation.drafts):
        drafts.append(operation.note)
    tables.add_rows(turn.lineage_id, turn.session_id, turn.id, drafts, operation.now)


def _freeze(tables: Tables, operation: Begin, session_id: SessionId) -> None:
    session, snapshot = tables.sessions[session_id], operation.snapshot
    if snapshot is None or session.model_config is not None:
        return
    frozen = attrs.evolve(session, model_config=snapshot.model_config)
    if session.model is None and session.system_prompt is None:
        frozen = attrs.evolve(frozen, model=snapshot.model, system_prompt=snapshot.system_prompt)
    tables.sessions[session_id] = frozen


def _begun(tables: Tables, turn: Turn, *, interrupted: Turn | None) -> Begun:
    lineage, rows = tables.lineages[turn.lineage_id], tables.transcripts[turn.lineage_id]
    user_rows = {row.inbox_id: row for row in rows if row.inbox_id is not None}
    notes = [row for row in rows if row.turn_id == turn.id and row.kind == KIND_RECOVERY]
    return Begun(
        turn=turn,
        lease=tables.leases[lineage.id],
        session=tables.sessions[lineage.tip],
        items=tuple(tables.inbox[inbox_id] for inbox_id in turn.inbox_ids if inbox_id in tables.inbox),
        rows=tuple(user_rows[inbox_id] for inbox_id in turn.inbox_ids if inbox_id in user_rows) + tuple(notes[:1]),
        interrupted=interrupted,
        version=lineage.version,
    )


def check_fence(tables: Tables, fence: Fence) -> Turn:
    """Return the running turn of a fence.

    :raises LeaseLost: the lease or the turn is not what the fence says.
    """
    lease, turn = tables.leases.get(fence.lineage_id), tables.turns.get(fence.turn_id)
    held = lease is not None and lease.token == fence.token and lease.holder is not None
    if not held or turn is None or turn.lineage_id != fence.lineage_id or turn.outcome != ACTIVE:
        raise LeaseLost(fence.lineage_id, fence.token)
    return turn


def renew(tables: Tables, operation: Renew) -> Lease:
    """Run :class:`~hermes_hookspecs.operations.Renew`."""
    check_fence(tables, operation.fence)
    lease = tables.leases[operation.fence.lineage_id]
    renewed = attrs.evolve(
        lease,
        renewals=lease.renewals + 1,
        expires_at=operation.now + operation.ttl_ms,
        ttl_ms=operation.ttl_ms,
    )
    tables.leases[lease.lineage_id] = renewed
    return renewed


def append(tables: Tables, operation: Append) -> tuple[MessageId, ...]:
    """Run :class:`~hermes_hookspecs.operations.Append`."""
    turn = check_fence(tables, operation.fence)
    check_rows(open_calls(tables.transcripts[turn.lineage_id], turn.id), operation.drafts)
    check_stored_once(tables.transcripts[turn.lineage_id], operation.drafts)
    check_steered(operation.drafts)
    _take_steered(tables, operation, turn)
    rows = tables.add_rows(turn.lineage_id, turn.session_id, turn.id, operation.drafts, operation.now)
    note_calls(tables, turn.id, operation.audit)
    _add_usages(tables, turn, operation)
    tables.bump(turn.lineage_id)
    lease = tables.leases[turn.lineage_id]
    tables.leases[turn.lineage_id] = attrs.evolve(lease, renewals=lease.renewals + 1)
    return tuple(row.id for row in rows)


def _take_steered(tables: Tables, operation: Append, turn: Turn) -> None:
    """Settle the accepted messages that are said into a running turn, and make them part of it.

    :raises Conflict: one of them does not wait in the turn's lineage.
    """
    for inbox_id in [draft.inbox_id for draft in operation.drafts if draft.inbox_id is not None]:
        item = tables.inbox.get(inbox_id)
        waits = item is not None and item.status == PENDING and item.kind != CONTROL
        if item is None or not waits or item.lineage_id != turn.lineage_id:
            raise Conflict(f"message {inbox_id} does not wait in {turn.lineage_id} (any more); look again")
        tables.said_at(turn.lineage_id, item.source, operation.now)
        tables.settle(tables.set_item(item, attempts=item.attempts + 1), SETTLED, operation.now)
        turn = attrs.evolve(turn, inbox_ids=(*turn.inbox_ids, inbox_id))
    tables.turns[turn.id] = turn


def finish(tables: Tables, operation: Finish) -> Finished:
    """Run :class:`~hermes_hookspecs.operations.Finish`."""
    turn = check_fence(tables, operation.fence)
    rows = _store_last_rows(tables, operation, turn)
    _add_usages(tables, turn, operation)
    end_turn(tables, turn, operation.outcome, operation.reason, operation)
    lease = tables.leases[turn.lineage_id]
    tables.leases[turn.lineage_id] = attrs.evolve(lease, holder=None, acquired_at=None, expires_at=None)
    if operation.touch:
        tables.touch(turn.lineage_id, operation.now)
    return Finished(message_ids=tuple(row.id for row in rows), version=tables.bump(turn.lineage_id))


def _store_last_rows(tables: Tables, operation: Finish, turn: Turn) -> tuple[Message, ...]:
    """Store results, synthetic ones for the calls still open, then the other rows; return the rows of the drafts."""
    split = next((n for n, draft in enumerate(operation.drafts) if draft.role != TOOL), len(operation.drafts))
    results, rest = operation.drafts[:split], operation.drafts[split:]
    unanswered = check_rows(open_calls(tables.transcripts[turn.lineage_id], turn.id), results)
    check_rows({}, rest)
    check_stored_once(tables.transcripts[turn.lineage_id], operation.drafts)
    parts = (results, synthetic_results(tables, turn, unanswered.values(), operation.now), rest)
    stored = [tables.add_rows(turn.lineage_id, turn.session_id, turn.id, part, operation.now) for part in parts]
    return stored[0] + stored[2]


def revoke(tables: Tables, operation: Revoke) -> Turn | None:
    """Run :class:`~hermes_hookspecs.operations.Revoke`."""
    lineage = tables.lineage(operation.lineage_id)
    if operation.expected is not None and tables.leases[lineage.id].stamp != operation.expected:
        return None
    return revoke_lease(tables, operation)


def record_usage(tables: Tables, operation: RecordUsage) -> None:
    """Run :class:`~hermes_hookspecs.operations.RecordUsage`."""
    turn = tables.turns.get(operation.turn_id)
    if turn is not None:
        _add_usage(tables, turn, operation.usage, operation.now, late=turn.outcome != ACTIVE)


def _add_usages(tables: Tables, turn: Turn, operation: Append | Finish) -> None:
    for usage in operation.usage:
        _add_usage(tables, turn, usage, operation.now, late=False)
    for usage in operation.side_usage:
        _add_usage(tables, turn, usage, operation.now, late=True)


def _add_usage(tables: Tables, turn: Turn, usage: Usage, now: int, *, late: bool) -> None:
    recorded = RecordedUsage(usage=usage, at=now, late=late)
    tables.usage.append(UsageRow(turn.lineage_id, turn.id, recorded))
    session = tables.sessions[turn.session_id]
    tables.sessions[session.id] = attrs.evolve(
        session,
        input_tokens=_plus(session.input_tokens, usage.input_tokens),
        output_tokens=_plus(session.output_tokens, usage.output_tokens),
        cache_read_tokens=_plus(session.cache_read_tokens, usage.cache_read_tokens),
        cache_write_tokens=_plus(session.cache_write_tokens, usage.cache_write_tokens),
        estimated_cost_usd=_cost(session, usage),
    )


def _cost(session: Session, usage: Usage) -> float | None:
    """Return what a session has cost: unknown as soon as one report had no cost."""
    counters = (session.input_tokens, session.output_tokens, session.cache_read_tokens, session.cache_write_tokens)
    known, more = session.estimated_cost_usd, usage.estimated_cost_usd
    if known is None and all(counter is None for counter in counters):
        return more
    return None if known is None or more is None else known + more


def _plus(known: Number | None, more: Number | None) -> Number | None:
    """Add numbers of which each may be unknown; unknown and known is known."""
    if known is None or more is None:
        return more if known is None else known
    return known + more
