"""Operations on turns and leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import IllegalMessage, LeaseLost
from hermes_hookspecs.inbox import CLAIMED, SETTLED
from hermes_hookspecs.messages import (
    ASSISTANT,
    INTERRUPTED_RESULT,
    KIND_CLOSING,
    KIND_INTERRUPTED,
    ROLES,
    TOOL,
    MessageDraft,
    closing_text,
)
from hermes_hookspecs.turns import ACTIVE, Fence, Lease, Turn, Usage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import LineageId, MessageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_toy_store.book import Book

Calls = dict[str, str]
"""Open calls: id → name of the tool."""


def active(book: Book, lineage_id: LineageId) -> Turn | None:
    turns = (turn for turn in book.turns.values() if turn.lineage_id == lineage_id and turn.outcome == ACTIVE)
    return next(turns, None)


def _open(book: Book, turn: Turn) -> Calls:
    calls: Calls = {}
    for row in book.rows[turn.lineage_id]:
        if row.turn_id == turn.id and row.tool_calls:
            calls = {call.id: call.name for call in row.tool_calls}
        elif row.turn_id == turn.id and row.role == TOOL:
            calls.pop(row.tool_call_id or "", None)
    return calls


def _check(calls: Calls, drafts: Iterable[MessageDraft]) -> Calls:
    calls = dict(calls)
    for draft in drafts:
        if draft.role == TOOL:
            if calls.pop(draft.tool_call_id or "", None) is None:
                raise IllegalMessage(f"{draft.tool_call_id!r} is no open call")
            continue
        asked = {call.id: call.name for call in draft.tool_calls}
        wrong = draft.role not in ROLES or (asked and draft.role != ASSISTANT)
        if wrong or calls or len(asked) < len(draft.tool_calls):
            raise IllegalMessage(f"a {draft.role} row cannot stand here")
        calls = asked
    return calls


def _check_once(book: Book, turn: Turn, drafts: Iterable[MessageDraft]) -> None:
    stored = {row.inbox_id for row in book.rows[turn.lineage_id]}
    for draft in drafts:
        if draft.inbox_id is not None and draft.inbox_id in stored:
            raise IllegalMessage(f"message {draft.inbox_id} is stored already")
        stored.add(draft.inbox_id)


def _unanswered(calls: Calls, now: int) -> list[MessageDraft]:
    common = {"role": TOOL, "content": INTERRUPTED_RESULT, "kind": KIND_INTERRUPTED, "timestamp": now}
    return [MessageDraft(tool_call_id=each, tool_name=name, **common) for each, name in calls.items()]  # type: ignore[arg-type]


def _end(book: Book, turn: Turn, outcome: str, reason: str, now: int) -> Turn:
    book.turns[turn.id] = attrs.evolve(turn, outcome=outcome, reason=reason, ended_at=now)
    for inbox_id in turn.inbox_ids:
        item = book.inbox.get(inbox_id)
        if item is not None and item.status == CLAIMED:
            book.set_item(item, status=SETTLED)
    return book.turns[turn.id]


def _break_off(book: Book, turn: Turn, outcome: str, reason: str, now: int) -> Turn:
    text = closing_text(outcome, reason)
    closing = MessageDraft(role=ASSISTANT, content=text, kind=KIND_CLOSING, timestamp=now)
    book.store(turn, [*_unanswered(_open(book, turn), now), closing], now)
    return _end(book, turn, outcome, reason, now)


def take_away(book: Book, lineage_id: LineageId, outcome: str, reason: str, now: int) -> Turn | None:
    lease, turn = book.leases[lineage_id], active(book, lineage_id)
    free = {"holder": None, "acquired_at": None, "expires_at": None}
    book.leases[lineage_id] = attrs.evolve(lease, token=lease.token + 1, renewals=0, **free)  # type: ignore[arg-type]
    ended = None if turn is None else _break_off(book, turn, outcome, reason, now)
    if turn is not None or lease.holder is not None:
        book.change(lineage_id)
    return ended


def begin(book: Book, op: ops.Begin) -> ops.BeginResult:
    lineage = book.lineage(op.lineage_id)
    lease, known = book.leases[lineage.id], book.turns.get(op.turn_id)
    if known is not None and known.outcome == ACTIVE and lease.holder == op.holder:
        return _begun(book, known, None)
    if lease.holder is not None and lease.stamp != op.presumed_dead:
        return ops.Busy(lease=lease)
    items = () if op.maintenance else _claimable(book, op)
    if not isinstance(items, tuple):
        return items
    dead = active(book, lineage.id)
    if dead is not None:
        dead = _break_off(book, dead, "interrupted", "its process ended", op.now)
    book.leases[lineage.id] = Lease(
        lineage_id=lineage.id,
        token=lease.token + 1,
        renewals=0,
        holder=op.holder,
        acquired_at=op.now,
        expires_at=op.now + op.ttl_ms,
        ttl_ms=op.ttl_ms,
    )
    for item in items:
        book.said_at(lineage.id, item.source)
    tip = book.sessions[lineage.tip]
    if tip.ended_at is not None and not op.maintenance:
        book.sessions[tip.id] = attrs.evolve(tip, ended_at=None, end_reason=None)
    turn = book.turns[op.turn_id] = Turn(
        id=op.turn_id,
        lineage_id=lineage.id,
        session_id=lineage.tip,
        token=lease.token + 1,
        entrance=op.holder.entrance,
        session_key=op.holder.session_key,
        user_id=items[0].source.participant if items else None,
        user_name=items[0].source.user_name if items else None,
        inbox_ids=tuple(item.id for item in items),
        started_at=op.now,
        ended_at=None,
        outcome=ACTIVE,
        reason="",
        attempt=items[0].attempts + 1 if items else 1,
    )
    for item in items:
        book.set_item(item, status=CLAIMED, attempts=item.attempts + 1)
    there = {row.inbox_id for row in book.rows[lineage.id]}
    book.store(turn, [draft for draft in op.drafts if items and draft.inbox_id not in there], op.now)
    tip, frozen = book.sessions[lineage.tip], op.snapshot
    if frozen is not None and tip.model is tip.model_config is tip.system_prompt is None:
        book.sessions[tip.id] = attrs.evolve(tip, **attrs.asdict(frozen))
    if op.touch:
        book.touch(lineage.id, op.now)
    book.change(lineage.id, turn_count=lineage.turn_count + 1)
    return _begun(book, turn, dead)


def _claimable(book: Book, op: ops.Begin) -> tuple[InboxItem, ...] | ops.NotYourTurn | ops.Changed | ops.NothingWaiting:
    waiting = [item for item in book.waiting(lineage_id=op.lineage_id) if item.id not in op.passed_over]
    wanted = [draft.inbox_id for draft in op.drafts]
    if not waiting or not wanted:
        return ops.NothingWaiting()
    if wanted[0] not in [item.id for item in waiting]:
        return ops.Changed()
    if waiting[0].id != wanted[0]:
        return ops.NotYourTurn(item=waiting[0])
    items = tuple(waiting[: len(wanted)])
    places = {(item.session_key, item.source.participant, item.source.thread_id) for item in items}
    return items if [item.id for item in items] == wanted and len(places) == 1 else ops.Changed()


def _begun(book: Book, turn: Turn, interrupted: Turn | None) -> ops.Begun:
    lineage = book.lineages[turn.lineage_id]
    return ops.Begun(
        turn=turn,
        lease=book.leases[lineage.id],
        session=book.sessions[lineage.tip],
        items=tuple(book.inbox[each] for each in turn.inbox_ids),
        rows=tuple(row for row in book.rows[lineage.id] if row.inbox_id in turn.inbox_ids),
        interrupted=interrupted,
        version=lineage.version,
    )


def _fenced(book: Book, fence: Fence) -> Turn:
    lease, turn = book.leases.get(fence.lineage_id), book.turns.get(fence.turn_id)
    if lease is None or lease.holder is None or lease.token != fence.token or turn is None:
        raise LeaseLost(fence.lineage_id, fence.token)
    if turn.outcome != ACTIVE or turn.lineage_id != fence.lineage_id:
        raise LeaseLost(fence.lineage_id, fence.token)
    return turn


def renew(book: Book, op: ops.Renew) -> Lease:
    lease = book.leases[_fenced(book, op.fence).lineage_id]
    renewed = attrs.evolve(lease, renewals=lease.renewals + 1, expires_at=op.now + op.ttl_ms, ttl_ms=op.ttl_ms)
    book.leases[lease.lineage_id] = renewed
    return renewed


def append(book: Book, op: ops.Append) -> tuple[MessageId, ...]:
    turn = _fenced(book, op.fence)
    _check(_open(book, turn), op.drafts)
    _check_once(book, turn, op.drafts)
    ids = book.store(turn, op.drafts, op.now)
    book.change(turn.lineage_id)
    return ids


def finish(book: Book, op: ops.Finish) -> ops.Finished:
    turn = _fenced(book, op.fence)
    split = next((place for place, draft in enumerate(op.drafts) if draft.role != TOOL), len(op.drafts))
    left = _check(_open(book, turn), op.drafts[:split])
    _check({}, op.drafts[split:])
    _check_once(book, turn, op.drafts)
    ids = book.store(turn, op.drafts[:split], op.now)
    book.store(turn, _unanswered(left, op.now), op.now)
    ids += book.store(turn, op.drafts[split:], op.now)
    for usage in op.usage:
        _add_usage(book, turn, usage)
    _end(book, turn, op.outcome, op.reason, op.now)
    lease = book.leases[turn.lineage_id]
    book.leases[turn.lineage_id] = attrs.evolve(lease, holder=None, acquired_at=None, expires_at=None)
    if op.touch:
        book.touch(turn.lineage_id, op.now)
    book.change(turn.lineage_id)
    return ops.Finished(message_ids=ids, version=book.lineages[turn.lineage_id].version)


def revoke(book: Book, op: ops.Revoke) -> Turn | None:
    lineage_id = book.lineage(op.lineage_id).id
    if op.expected is not None and op.expected != book.leases[lineage_id].stamp:
        return None
    return take_away(book, lineage_id, op.outcome, op.reason, op.now)


def record_usage(book: Book, op: ops.RecordUsage) -> None:
    if op.turn_id in book.turns:
        _add_usage(book, book.turns[op.turn_id], op.usage)


def _add_usage(book: Book, turn: Turn, usage: Usage) -> None:
    book.usage.setdefault(turn.id, []).append(usage)
    session = book.sessions[turn.session_id]
    more = attrs.asdict(usage, filter=lambda field, value: field.name != "model" and value is not None)
    sums = {name: number + (getattr(session, name) or 0) for name, number in more.items()}
    book.sessions[session.id] = attrs.evolve(session, **sums)
