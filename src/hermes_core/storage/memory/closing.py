"""How a turn ends: open calls get results, the turn its outcome, its inbox rows are done or wait again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from hermes_core.storage.memory.legality import open_calls
from hermes_core.storage.memory.outbox import store_deliveries
from hermes_hookspecs.approvals import APPROVED
from hermes_hookspecs.audit import REFUSED, RUNNING
from hermes_hookspecs.inbox import CLAIMED, PENDING, SETTLED
from hermes_hookspecs.messages import (
    ASSISTANT,
    INTERRUPTED_RESULT,
    KIND_CLOSING,
    KIND_INTERRUPTED,
    NOT_APPROVED_RESULT,
    NOT_BEGUN_RESULT,
    TOOL,
    MessageDraft,
    closing_text,
    may_have_begun,
)
from hermes_hookspecs.turns import ACTIVE

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from hermes_core.storage.memory.tables import Tables
    from hermes_hookspecs.ids import InboxId, LineageId
    from hermes_hookspecs.inbox import InboxItem
    from hermes_hookspecs.messages import ToolCall
    from hermes_hookspecs.operations import Begin, Finish, Revoke
    from hermes_hookspecs.turns import Turn

__all__ = ["active_turn", "break_off", "claimed_again", "end_turn", "revoke_lease", "synthetic_results"]


def active_turn(tables: Tables, lineage_id: LineageId) -> Turn | None:
    """Return the turn that runs in a lineage; there is never a second one."""
    for turn in tables.turns.values():
        if turn.lineage_id == lineage_id and turn.outcome == ACTIVE:
            return turn
    return None


def synthetic_results(tables: Tables, turn: Turn, calls: Iterable[ToolCall], now: int) -> list[MessageDraft]:
    """Return results for calls that were never answered, in order of the calls; note which did not run."""
    calls = tuple(calls)
    not_run = _not_run(tables, turn, calls)
    return [
        MessageDraft(
            role=TOOL,
            content=not_run.get(call.id, INTERRUPTED_RESULT),
            kind=KIND_INTERRUPTED,
            tool_call_id=call.id,
            tool_name=call.name,
            timestamp=now,
        )
        for call in calls
    ]


def _not_run(tables: Tables, turn: Turn, calls: Sequence[ToolCall]) -> dict[str, str]:
    """Return the results of the calls that did not run, by id; the audit notes that they did not."""
    approvals = [one for one in tables.approvals.values() if one.turn_id == turn.id and one.status != APPROVED]
    asked = {one.call_id: one.id for one in approvals}
    begun = may_have_begun(calls)
    results = {call.id: NOT_BEGUN_RESULT for call in calls if call not in begun}
    results |= {call.id: NOT_APPROVED_RESULT for call in calls if call.id in asked}
    for call_id, result in results.items():
        row = tables.audit.get((turn.id, call_id))
        if row is not None and row.entry.outcome == RUNNING:
            approval_id = asked.get(call_id, row.entry.approval_id)
            entry = attrs.evolve(row.entry, outcome=REFUSED, result=result, approval_id=approval_id)
            tables.audit[turn.id, call_id] = attrs.evolve(row, entry=entry)
    return results


def claimed_again(tables: Tables, turn: Turn, again: Collection[InboxId]) -> list[InboxItem]:
    """Return the rows that a turn has claimed and that wait once more when it ends, oldest first."""
    return [item for item in _claimed(tables, turn) if item.id in again]


def _claimed(tables: Tables, turn: Turn) -> list[InboxItem]:
    found = [tables.inbox.get(inbox_id) for inbox_id in sorted(turn.inbox_ids)]
    return [item for item in found if item is not None and item.status == CLAIMED]


def end_turn(tables: Tables, turn: Turn, outcome: str, reason: str, wish: Begin | Finish | Revoke) -> Turn:
    """Write down how a turn ended; its inbox rows are done or wait again, and what ``wish`` brings is stored."""
    ended = attrs.evolve(turn, outcome=outcome, reason=reason, ended_at=wish.now)
    tables.turns[turn.id] = ended
    for item in _claimed(tables, turn):
        if item.id in wish.again:
            tables.set_item(item, status=PENDING)
        else:
            tables.settle(item, SETTLED, wish.now)
    store_deliveries(tables, wish.deliveries, wish.now)
    return ended


def break_off(tables: Tables, turn: Turn, outcome: str, reason: str, wish: Begin | Revoke) -> Turn:
    """End a turn that did not finish by itself: results for its open calls, one closing row."""
    rows = tables.transcripts[turn.lineage_id]
    drafts = synthetic_results(tables, turn, open_calls(rows, turn.id).values(), wish.now)
    text = closing_text(outcome, reason)
    drafts.append(MessageDraft(role=ASSISTANT, content=text, kind=KIND_CLOSING, timestamp=wish.now))
    tables.add_rows(turn.lineage_id, turn.session_id, turn.id, drafts, wish.now)
    return end_turn(tables, turn, outcome, reason, wish)


def revoke_lease(tables: Tables, wish: Revoke) -> Turn | None:
    """Take the lease of a lineage away and break off its turn; return the turn that ended."""
    lineage_id = wish.lineage_id
    lease, turn = tables.leases[lineage_id], active_turn(tables, lineage_id)
    tables.leases[lineage_id] = attrs.evolve(
        lease, token=lease.token + 1, renewals=0, holder=None, acquired_at=None, expires_at=None
    )
    ended = None if turn is None else break_off(tables, turn, wish.outcome, wish.reason, wish)
    if ended is not None or lease.holder is not None:
        tables.bump(lineage_id)
    return ended
