"""Operations on turns and leases."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_hookspecs import operations as ops
from hermes_hookspecs.errors import Conflict, IllegalMessage, LeaseLost
from hermes_hookspecs.inbox import CLAIMED, PENDING, SETTLED
from hermes_hookspecs.messages import (
    ASSISTANT,
    INTERRUPTED_RESULT,
    KIND_CLOSING,
    KIND_INTERRUPTED,
    KIND_RECOVERY,
    KIND_SUMMARY,
    ROLES,
    TOOL,
    USER,
    MessageDraft,
    closing_text,
)
from hermes_hookspecs.operations.compression import child_title, is_summary
from hermes_hookspecs.outbox import address_of
from hermes_hookspecs.turns import ACTIVE, Fence, Lease, RecordedUsage, Turn, Usage
from hermes_toy_store import post

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hermes_hookspecs.ids import LineageId, MessageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import ToolCall
    from hermes_toy_store.book import Book

Calls = dict[str, "ToolCall"]
"""Open calls by their ids."""
NUMBERS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "estimated_cost_usd")


def active(book: Book, lineage_id: LineageId) -> Turn | None:
    turns = (turn for turn in book.turns.values() if turn.lineage_id == lineage_id and turn.outcome == ACTIVE)
    return next(turns, None)


def open_calls(book: Book, turn: Turn) -> Calls:
    calls: Calls = {}
    for row in book.rows[turn.lineage_id]:
        if row.turn_id == turn.id and row.tool_calls:
            calls = {call.id: call for call in row.tool_calls}
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
        asked = {call.id: call for call in draft.tool_calls}
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
    return [MessageDraft(tool_call_id=each, tool_name=call.name, **common) for each, call in calls.items()]  # type: ignore[arg-type]


def _end(book: Book, turn: Turn, outcome: str, reason: str, op: ops.Begin | ops.Finish | ops.Revoke) -> Turn:
    book.turns[turn.id] = attrs.evolve(turn, outcome=outcome, reason=reason, ended_at=op.now)
    for item in _claimed(book, turn):
        if item.id in op.again:
            book.set_item(item, status=PENDING)
        else:
            book.settle(item, SETTLED, op.now)
    post.store(book, op.deliveries, op.now)
    return book.turns[turn.id]


def _claimed(book: Book, turn: Turn) -> list[InboxItem]:
    found = [book.inbox[each] for each in turn.inbox_ids if each in book.inbox]
    return [item for item in found if item.status == CLAIMED]


def _break_off(book: Book, turn: Turn, outcome: str, reason: str, op: ops.Begin | ops.Revoke) -> Turn:
    text = closing_text(outcome, reason)
    closing = MessageDraft(role=ASSISTANT, content=text, kind=KIND_CLOSING, timestamp=op.now)
    book.store(turn, [*_unanswered(open_calls(book, turn), op.now), closing], op.now)
    return _end(book, turn, outcome, reason, op)


def take_away(book: Book, op: ops.Revoke) -> Turn | None:
    lineage_id = op.lineage_id
    lease, turn = book.leases[lineage_id], active(book, lineage_id)
    free = {"holder": None, "acquired_at": None, "expires_at": None}
    book.leases[lineage_id] = attrs.evolve(lease, token=lease.token + 1, renewals=0, **free)  # type: ignore[arg-type]
    ended = None if turn is None else _break_off(book, turn, op.outcome, op.reason, op)
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
    dead = active(book, lineage.id)
    items = () if op.maintenance else _claimable(book, op, dead)
    if not isinstance(items, tuple):
        return items
    if dead is not None:
        dead = _break_off(book, dead, "interrupted", "its process ended", op)
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
        book.said_at(lineage.id, item.source, op.now)
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
    book.store(turn, _to_store(book, op) if items else [], op.now)
    tip, frozen = book.sessions[lineage.tip], op.snapshot
    if frozen is not None and tip.model_config is None:
        is_new = tip.model is tip.system_prompt is None
        late = attrs.evolve(frozen, model=tip.model, system_prompt=tip.system_prompt)
        book.sessions[tip.id] = attrs.evolve(tip, **attrs.asdict(frozen if is_new else late))
    if op.touch:
        book.touch(lineage.id, op.now)
    book.change(lineage.id, turn_count=lineage.turn_count + 1)
    return _begun(book, turn, dead)


def _to_store(book: Book, op: ops.Begin) -> list[MessageDraft]:
    there = {row.inbox_id for row in book.rows[op.lineage_id]}
    new = [draft for draft in op.drafts if draft.inbox_id not in there]
    return [*new, op.note] if op.note is not None and len(new) < len(op.drafts) else new


def _claimable(
    book: Book, op: ops.Begin, dead: Turn | None
) -> tuple[InboxItem, ...] | ops.NotYourTurn | ops.Changed | ops.NothingWaiting:
    queue = {item.id: item for item in book.waiting(lineage_id=op.lineage_id)}
    queue |= {item.id: item for item in _claimed(book, dead) if item.id in op.again} if dead is not None else {}
    waiting = [queue[each] for each in sorted(queue) if each not in op.passed_over]
    wanted = [draft.inbox_id for draft in op.drafts]
    if not waiting or not wanted:
        return ops.NothingWaiting()
    if wanted[0] not in [item.id for item in waiting]:
        return ops.Changed()
    if waiting[0].id != wanted[0]:
        return ops.NotYourTurn(item=waiting[0])
    items = tuple(waiting[: len(wanted)])
    places = {(item.session_key, item.source.participant, address_of(item.source)) for item in items}
    return items if [item.id for item in items] == wanted and len(places) == 1 else ops.Changed()


def _begun(book: Book, turn: Turn, interrupted: Turn | None) -> ops.Begun:
    lineage = book.lineages[turn.lineage_id]
    rows = {row.inbox_id: row for row in book.rows[lineage.id] if row.inbox_id is not None}
    notes = [row for row in book.rows[lineage.id] if row.turn_id == turn.id and row.kind == KIND_RECOVERY]
    return ops.Begun(
        turn=turn,
        lease=book.leases[lineage.id],
        session=book.sessions[lineage.tip],
        items=tuple(book.inbox[each] for each in turn.inbox_ids if each in book.inbox),
        rows=(*(rows[each] for each in turn.inbox_ids if each in rows), *notes[:1]),
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
    _check(open_calls(book, turn), op.drafts)
    _check_once(book, turn, op.drafts)
    _steer(book, turn, op)
    ids = book.store(turn, op.drafts, op.now)
    _add_usages(book, turn, op)
    book.change(turn.lineage_id)
    lease = book.leases[turn.lineage_id]
    book.leases[turn.lineage_id] = attrs.evolve(lease, renewals=lease.renewals + 1)
    return ids


def _steer(book: Book, turn: Turn, op: ops.Append) -> None:
    steered = [draft for draft in op.drafts if draft.inbox_id is not None]
    if any(draft.role != USER for draft in steered):
        raise IllegalMessage("only a user row holds an accepted message")
    for draft in steered:
        item = next((item for item in book.waiting(lineage_id=turn.lineage_id) if item.id == draft.inbox_id), None)
        if item is None:
            raise Conflict(f"message {draft.inbox_id} does not wait here")
        book.said_at(turn.lineage_id, item.source, op.now)
        book.settle(item, SETTLED, op.now, attempts=item.attempts + 1)
        turn = book.turns[turn.id] = attrs.evolve(turn, inbox_ids=(*turn.inbox_ids, item.id))


def finish(book: Book, op: ops.Finish) -> ops.Finished:
    turn = _fenced(book, op.fence)
    split = next((place for place, draft in enumerate(op.drafts) if draft.role != TOOL), len(op.drafts))
    left = _check(open_calls(book, turn), op.drafts[:split])
    _check({}, op.drafts[split:])
    _check_once(book, turn, op.drafts)
    ids = book.store(turn, op.drafts[:split], op.now)
    book.store(turn, _unanswered(left, op.now), op.now)
    ids += book.store(turn, op.drafts[split:], op.now)
    _add_usages(book, turn, op)
    _end(book, turn, op.outcome, op.reason, op)
    lease = book.leases[turn.lineage_id]
    book.leases[turn.lineage_id] = attrs.evolve(lease, holder=None, acquired_at=None, expires_at=None)
    if op.touch:
        book.touch(turn.lineage_id, op.now)
    book.change(turn.lineage_id)
    return ops.Finished(message_ids=ids, version=book.lineages[turn.lineage_id].version)


def compress(book: Book, op: ops.Compress) -> ops.Compressed:
    made = book.sessions.get(op.session_id)
    if made is None:
        turn = _fenced(book, op.fence)
        _go_on(book, op, turn)
        if op.finish:
            finish(book, ops.Finish(fence=op.fence, outcome="done", now=op.now, touch=False))
        made = book.sessions[op.session_id]
    return ops.Compressed(lineage_id=made.lineage_id, session=made, version=book.lineages[made.lineage_id].version)


def _go_on(book: Book, op: ops.Compress, turn: Turn) -> None:
    lineage, lease = book.lineages[turn.lineage_id], book.leases[turn.lineage_id]
    if lineage.tip != op.expected:
        raise Conflict(f"the tip of {lineage.id} is {lineage.tip} by now")
    first = [row for row in book.rows[lineage.id] if row.id == op.kept_from and not row.hidden]
    if not first or first[0].role == TOOL or first[0].kind == KIND_SUMMARY or open_calls(book, turn):
        raise IllegalMessage(f"row {op.kept_from} cannot stand first")
    if op.summary is not None and not is_summary(op.summary):
        raise IllegalMessage("that is no summary")
    parent, number = book.sessions[lineage.tip], lineage.segments + 1
    book.sessions[parent.id] = attrs.evolve(parent, ended_at=op.now, end_reason=op.reason)
    child = attrs.evolve(
        parent,
        id=op.session_id,
        parent_session_id=parent.id,
        kept_from=op.kept_from,
        title=child_title(lineage.title, number),
        started_at=op.now,
        message_count=0,
        tool_call_count=0,
    )
    book.sessions[child.id] = attrs.evolve(child, **dict.fromkeys(NUMBERS))
    book.leases[lineage.id] = attrs.evolve(lease, renewals=lease.renewals + 1)
    turn = book.turns[turn.id] = attrs.evolve(turn, session_id=child.id)
    book.change(lineage.id, tip=child.id, segments=number)
    book.store(turn, [] if op.summary is None else [op.summary], op.now)
    book.tell(lineage.id, op.now)


def revoke(book: Book, op: ops.Revoke) -> Turn | None:
    lineage_id = book.lineage(op.lineage_id).id
    if op.expected is not None and op.expected != book.leases[lineage_id].stamp:
        return None
    return take_away(book, op)


def record_usage(book: Book, op: ops.RecordUsage) -> None:
    if op.turn_id in book.turns:
        turn = book.turns[op.turn_id]
        _add_usage(book, turn, op.usage, op.now, late=turn.outcome != ACTIVE)


def _add_usages(book: Book, turn: Turn, op: ops.Append | ops.Finish) -> None:
    for usage in op.usage:
        _add_usage(book, turn, usage, op.now, late=False)
    for usage in op.side_usage:
        _add_usage(book, turn, usage, op.now, late=True)


def _add_usage(book: Book, turn: Turn, usage: Usage, now: int, *, late: bool) -> None:
    recorded = RecordedUsage(usage=usage, at=now, late=late)
    book.usage.setdefault(turn.id, []).append(recorded)
    session = book.sessions[turn.session_id]
    more = attrs.asdict(usage, filter=lambda field, value: field.name != "model" and value is not None)
    sums = {name: number + (getattr(session, name) or 0) for name, number in more.items()}
    turns = [one.id for one in book.turns.values() if one.session_id == session.id]
    if any(one.usage.estimated_cost_usd is None for each in turns for one in book.usage.get(each, ())):
        sums["estimated_cost_usd"] = None  # one call of unknown cost makes the sum unknown
    book.sessions[session.id] = attrs.evolve(session, **sums)
